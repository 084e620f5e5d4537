<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/** The runner could not start the tests. */
final class RunnerException extends \RuntimeException
{
    public const EXIT_STATUS = 2;

    public static function usage(string $problem): self
    {
        return new self("{$problem}\nusage: ./test [--full] [--no-checks] [--shards N] [--slowest] [PATH...]");
    }

    public static function interrupted(): self
    {
        return new self('Interrupted');
    }

    public static function noMutation(string $name): self
    {
        return new self("No mutation is called \"{$name}\": tests/mutations/{$name}.patch does not exist");
    }

    public static function notListed(string $output): self
    {
        return new self("PHPUnit could not list the tests: {$output}");
    }
}
