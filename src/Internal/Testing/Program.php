<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

use Spindle\Internal\Launcher\Descriptors;
use Spindle\Internal\Warnings;

/** Starts programs of test servers. They inherit no descriptors and only PASSED_VARIABLES, so tests are repeatable. */
final class Program
{
    private const NULL_DEVICE = ['null'];

    /** Environment variables that programs inherit. In addition, programs get the locale "C". */
    private const PASSED_VARIABLES = ['PATH', 'LD_LIBRARY_PATH'];

    /** Runs a program in a new session if setsid exists. A terminal sends no signals to programs of other sessions. */
    private const DETACH_SCRIPT = 'command -v setsid >/dev/null && exec setsid "$@"; exec "$@"';

    /** Makes a guardian ignore signals, because it must remove the test server after this process has ended. */
    private const IGNORE_SIGNALS_SCRIPT = 'trap "" HUP INT QUIT TERM; ';

    /**
     * @param list<string> $command
     *
     * @return array{int, string} exit code; standard output and standard error in one trimmed string
     *
     * @throws ServerException
     */
    public static function run(array $command): array
    {
        [$process, [1 => $pipe]] = self::open($command, 'exec "$@" 2>&1', [1 => ['pipe', 'w']]);
        $output = stream_get_contents($pipe);
        fclose($pipe);

        return [proc_close($process), trim((string) $output)];
    }

    /**
     * @param list<string> $command
     * @param string       $output  file to which the program's standard output and standard error are appended
     *
     * @return resource process handle
     *
     * @throws ServerException
     */
    public static function start(array $command, string $output): mixed
    {
        return self::open($command, 'exec >>"$0" 2>&1; ' . self::DETACH_SCRIPT, [], $output)[0];
    }

    /**
     * @param list<string> $command
     *
     * @return array{resource, resource} process handle, and the pipe to its standard input
     *
     * @throws ServerException
     */
    public static function startGuardian(array $command): array
    {
        [$process, [$pipe]] = self::open(
            $command,
            self::IGNORE_SIGNALS_SCRIPT . self::DETACH_SCRIPT,
            [0 => ['pipe', 'r']],
        );

        return [$process, $pipe];
    }

    /**
     * @param list<string>                              $command
     * @param array<int, array{0: string, 1?: string}> $descriptors
     * @param string                                   $name        value of `$0` in the shell script
     *
     * @return array{resource, array<int, resource>} process and pipes
     */
    private static function open(array $command, string $shell, array $descriptors, string $name = 'sh'): array
    {
        foreach ([0, 1, 2, 3, ...Descriptors::toReplace()] as $descriptor) {
            $descriptors[$descriptor] ??= self::NULL_DEVICE;
        }
        error_clear_last();
        $words = ['/bin/sh', '-c', $shell, $name, ...$command];
        $process = Warnings::suppressed(static function () use ($words, $descriptors, &$pipes): mixed {
            return proc_open($words, $descriptors, $pipes, '/', self::environment());
        });
        if ($process === false) {
            throw ServerException::cannotDo(
                "'{$command[0]}' could not be started",
                error_get_last()['message'] ?? 'proc_open failed',
            );
        }

        /** @var array<int, resource> $pipes */
        return [$process, $pipes];
    }

    /** @return array<string, string> */
    private static function environment(): array
    {
        $environment = ['LC_ALL' => 'C'];
        foreach (self::PASSED_VARIABLES as $name) {
            $value = getenv($name);
            if ($value !== false) {
                $environment[$name] = $value;
            }
        }

        return $environment;
    }
}
