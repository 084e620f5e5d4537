<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** limit.c, compiled for the lifetime of this process. */
final class LimitProgram
{
    /** Environment variable with its path, for child processes. */
    public const VARIABLE = 'SPINDLE_BENCH_LIMIT';

    private static ?string $missing = null;

    /** @return string|null the path; null when it can't be compiled */
    public static function path(): ?string
    {
        $path = getenv(self::VARIABLE);
        if ($path === false) {
            $path = self::compile();
            putenv(self::VARIABLE . "={$path}");
        }

        return $path === '' ? null : $path;
    }

    /** Returns why the program is not available; null when it is. */
    public static function missing(): ?string
    {
        return self::path() !== null ? null : self::$missing ?? 'limit.c could not be compiled';
    }

    /**
     * @param list<string>          $command the command, with `{}` for a number; `-` to run lines
     * @param iterable<int, string> $lines
     */
    public static function run(int $count, int $concurrency, array $command, iterable $lines = []): LimitResult
    {
        $path = self::path() ?? throw new UsageException('this needs the limit program: ' . self::missing());
        [$status, $output] = Program::run([$path, (string) $count, (string) $concurrency, ...$command], $lines);
        if ($status !== 0) {
            throw new \RuntimeException("The limit program ended with {$status}");
        }

        return LimitResult::parse($output);
    }

    private static function compile(): string
    {
        $compiler = Program::find('cc') ?? Program::find('gcc') ?? Program::find('clang');
        if ($compiler === null) {
            self::$missing = 'no C compiler is on PATH';

            return '';
        }
        $path = sys_get_temp_dir() . '/spindle-limit-' . bin2hex(random_bytes(6));
        self::removeAtExit($path);
        exec(
            implode(
                ' ',
                array_map(escapeshellarg(...), [$compiler, '-O2', '-o', $path, \dirname(__DIR__) . '/limit.c']),
            ) . ' 2>&1',
            $errors,
            $status,
        );
        self::$missing = $status === 0 ? null : 'limit.c does not compile here: ' . ($errors[0] ?? '');

        return $status === 0 ? $path : '';
    }

    /** Removes the program at exit, and with ext-pcntl after Ctrl-C, too. */
    private static function removeAtExit(string $path): void
    {
        register_shutdown_function(static fn(): bool => @unlink($path));
        if (\function_exists('pcntl_async_signals')) {
            pcntl_async_signals(true);
            pcntl_signal(\SIGINT, static fn() => exit(130));
        }
    }
}
