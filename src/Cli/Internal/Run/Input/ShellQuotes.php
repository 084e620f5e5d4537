<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Quotes words of commands for printing and for the job log, in the style of GNU parallel. */
final class ShellQuotes
{
    public const PLAIN_PATTERN = '~^[\w./+-]+$~D';

    public static function quoted(string $text): string
    {
        return preg_match(self::PLAIN_PATTERN, $text) === 1 ? $text : self::around($text);
    }

    public static function around(string $text): string
    {
        $quoted = "'" . str_replace("'", "'\"'\"'", $text) . "'";

        return (string) preg_replace("~^''(?=.)|(?<=.)''$~Ds", '', $quoted);
    }

    public static function text(Command $command): string
    {
        return $command->line ?? implode(' ', array_map(self::quoted(...), $command->words()));
    }
}
