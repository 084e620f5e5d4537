<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** Quotes as GNU parallel writes them, in commands that are printed and in the job log. */
final class ShellQuotes
{
    /** Texts that need no quotes. */
    public const PLAIN_PATTERN = '~^[\w./+-]+$~D';

    private function __construct() {}

    public static function around(string $text): string
    {
        return "'" . str_replace("'", "'\"'\"'", $text) . "'";
    }

    public static function text(Command $command): string
    {
        return $command->line ?? implode(' ', array_map(
            static fn(string $word): string => preg_match(self::PLAIN_PATTERN, $word) === 1
                ? $word
                : self::around($word),
            $command->words(),
        ));
    }
}
