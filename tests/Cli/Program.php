<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use Spindle\Tests\Fork\ForkServer;
use Spindle\Tests\Fork\ProgramResult;
use Symfony\Component\Process\Process;

/**
 * The command `spindle`: bin/spindle, or the file that SPINDLE_BIN names.
 *
 *     SPINDLE_BIN=build/spindle.phar ./test tests/Cli
 *
 * If PHP can fork, bin/spindle runs in a fork of a PHP that has loaded it already. Only `serve` always starts a new
 * PHP.
 */
final class Program
{
    /** Bash code that closes descriptors which the test process has inherited. */
    public const CLOSE_ALL = 'for fd in /proc/self/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval "exec $fd>&-"; done; ';

    private const DEADLINE = 240.0;

    /**
     * Runs the command to its end, with pipes as standard descriptors.
     *
     * @param list<string>          $arguments
     * @param array<string, string> $environment in addition to that of this process
     */
    public static function run(
        array $arguments,
        string $directory,
        array $environment = [],
        string $input = '',
    ): ProgramResult {
        $restarts = $arguments[0] === 'serve'; // impossible in a fork
        if (!$restarts && !self::isGiven() && ForkServer::isAvailable()) {
            return ForkServer::run(self::path(), $arguments, $directory, $environment, $input);
        }
        $options = ['-d', 'error_reporting=-1', '-d', 'display_errors=stderr'];
        $command = [\PHP_BINARY, ...$options, self::path(), ...$arguments];
        $process = new Process($command, $directory, $environment, $input, self::DEADLINE);
        $process->run();

        return ProgramResult::of($process);
    }

    public static function path(): string
    {
        return self::isGiven()
            ? (string) realpath((string) getenv('SPINDLE_BIN'))
            : \dirname(__DIR__, 2) . '/bin/spindle';
    }

    public static function isPhar(): bool
    {
        return str_ends_with(self::path(), '.phar');
    }

    private static function isGiven(): bool
    {
        return !\in_array(getenv('SPINDLE_BIN'), [false, ''], true);
    }
}
