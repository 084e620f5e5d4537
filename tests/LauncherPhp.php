<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Command\StartMethod;
use Spindle\Internal\Launcher\PhpBinary;

/** The PHP binary that runs launchers, and variants of it. */
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
     * Data provider of the start methods that work on this machine.
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

    /** Creates a PHP without FFI, pcntl and posix, even if they are built in. */
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

    /** Creates a program that runs some shell lines first and then PHP. */
    public static function wrapper(string $directory, string $before, string $options = ''): string
    {
        $script = "#!/bin/sh\n{$before}\nexec " . escapeshellarg(\PHP_BINARY) . " {$options} \"\$@\"\n";
        $path = "{$directory}/php-" . hash('xxh64', $script);
        if (!is_file($path)) { // a shell may be reading an existing file
            file_put_contents($path, $script);
            chmod($path, 0o755);
        }

        return $path;
    }
}
