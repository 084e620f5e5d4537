<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** The tests could not be run at all. */
final class RunnerException extends \RuntimeException
{
    public const EXIT_STATUS = 2;

    public static function usage(string $problem): self
    {
        return new self("{$problem}\nusage: ./test [--full] [--no-checks] [--shards N] [--slowest] [PATH...]");
    }

    public static function noMutation(string $name): self
    {
        return new self("There is no tests/mutations/{$name}.patch");
    }

    public static function notListed(string $output): self
    {
        return new self("PHPUnit could not list the tests: {$output}");
    }
}
