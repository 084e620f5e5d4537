<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

/** Adapts error messages to `spindle work`, because only PHP code can follow their advice about pool options. */
final class OptionNames
{
    /** Matches advice about options that `spindle work` does not have. */
    private const OTHER_OPTIONS = "/; or set its path with \w+\(php: '[^']*'\)|(?:, or|\.) increase startTimeout"
        . '|\. Check that (?:WorkerPoolOptions\(php:\)|the option php of the pool) names a command-line PHP/i';

    private function __construct() {}

    /** Returns the message with the options of `spindle work`. */
    public static function in(string $message): string
    {
        return str_replace('WorkerPoolOptions(bootstrap:)', '--bootstrap', (string) preg_replace(
            self::OTHER_OPTIONS,
            '',
            $message,
        ));
    }
}
