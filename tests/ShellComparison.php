<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Assert;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandResult;

/** Runs lines by Command::shell() and by a shell that is started as a program, and compares the visible results. */
final class ShellComparison
{
    /**
     * @param list<string>               $lines
     * @param array<string, string|null> $environment
     */
    public static function assertSame(CommandPool $pool, array $lines, string $directory, array $environment = []): void
    {
        $commands = static function () use ($lines, $directory, $environment): \Generator {
            foreach ($lines as $line) {
                yield Command::shell($line)
                    ->withWorkingDirectory($directory)
                    ->withEnvironment($environment)
                    ->withTimeout(10);
                yield Command::of('/bin/sh', '-c', '--', $line)
                    ->withWorkingDirectory($directory)
                    ->withEnvironment($environment)
                    ->withTimeout(10);
            }
        };
        $results = iterator_to_array($pool->runInOrder($commands()), false);
        foreach ($lines as $i => $line) {
            Assert::assertSame(
                self::seen($results[2 * $i + 1]),
                self::seen($results[2 * $i]),
                "sh -c and Command::shell() differ on: {$line}",
            );
        }
    }

    /** @return array{int|null, int|null, bool, string, string} */
    private static function seen(CommandResult $result): array
    {
        // The messages of a shell contain the name by which it was called.
        $errors = str_replace('/bin/sh: ', 'sh: ', $result->stderr());

        return [$result->exitCode, $result->signal, $result->timedOut, $result->stdout(), $errors];
    }
}
