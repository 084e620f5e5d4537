<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Command\StartMethod;
use Spindle\Internal\Launcher\PhpBinary;

/** The PHP that runs launchers, and others that could. */
final class LauncherPhp
{
    private const FUNCTIONS = [
        'pcntl_alarm', 'pcntl_signal', 'pcntl_signal_dispatch', 'pcntl_signal_get_handler', 'pcntl_sigprocmask',
        'posix_getpid', 'posix_getppid', 'posix_getrlimit', 'posix_kill', 'posix_setpgid', 'posix_setsid',
    ];

    private static ?bool $hasFfi = null;

    public static function hasFfi(): bool
    {
        return self::$hasFfi ??= exec(implode(' ', array_map(escapeshellarg(...), [
            \PHP_BINARY, ...PhpBinary::options(), '-r', 'echo (int) extension_loaded("FFI");',
        ])) . ' 2>/dev/null') === '1';
    }

    /**
     * Those that work here, as a data provider gives them.
     *
     * @return iterable<string, array{StartMethod}>
     */
    public static function startMethods(): iterable
    {
        if (self::hasFfi()) {
            yield 'posix_spawn' => [StartMethod::PosixSpawn];
        }
        yield 'proc_open' => [StartMethod::ProcOpen];
    }

    /** A PHP without FFI, pcntl and posix, also where they are built into it. */
    public static function withoutExtensions(string $directory): string
    {
        return self::wrapper($directory, <<<'SH'
            for argument do
                shift
                case $argument in
                    extension=*) set -- "$@" precision=14 ;;
                    *) set -- "$@" "$argument" ;;
                esac
            done
            SH, '-d disable_functions=' . implode(',', self::FUNCTIONS));
    }

    /** A program that is used like PHP and does something before. */
    public static function wrapper(string $directory, string $before, string $options = ''): string
    {
        $script = "#!/bin/sh\n{$before}\nexec " . escapeshellarg(\PHP_BINARY) . " {$options} \"\$@\"\n";
        $path = "{$directory}/php-" . hash('xxh64', $script);
        if (!is_file($path)) { // else a shell may be reading it
            file_put_contents($path, $script);
            chmod($path, 0o755);
        }

        return $path;
    }
}
