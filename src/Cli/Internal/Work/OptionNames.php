<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

/** Adapts error messages to `spindle work`: removes advice that only PHP code can follow, and renames options. */
final class OptionNames
{
    /** Matches advice about options that `spindle work` does not have. */
    private const OTHER_OPTIONS = "/; or set its path with \w+\(php: '[^']*'\)|(?:, or|\.) increase startTimeout"
        . '|\. Check that (?:WorkerPoolOptions\(php:\)|the option php of the pool) names a command-line PHP/i';

    public static function in(string $message): string
    {
        return str_replace(
            ['WorkerPoolOptions(bootstrap:)', 'WorkerPoolOptions::$maxResultBytes'],
            ['--bootstrap', '--max-result'],
            (string) preg_replace(self::OTHER_OPTIONS, '', $message),
        );
    }
}
