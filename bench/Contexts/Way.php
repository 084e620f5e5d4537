<?php

declare(strict_types=1);

namespace Spindle\Bench\Contexts;

/** Ways to create or reuse a context that runs code concurrently. */
enum Way: string
{
    case Thread = 'thread';
    case Fork = 'fork';
    case ForkTwice = 'fork-counted-twice';
    case ProcOpen = 'proc_open';
    case PosixSpawn = 'posix_spawn';
    case ProcOpenPhp = 'proc_open-php';
    case PosixSpawnPhp = 'posix_spawn-php';
    case Worker = 'worker';

    public function label(): string
    {
        return match ($this) {
            self::Thread => 'threads (ext-parallel), joined',
            self::Fork => 'forks, waited for',
            self::ForkTwice => "forks by Threads against processes' count",
            self::ProcOpen => 'proc_open, /bin/true',
            self::PosixSpawn => 'posix_spawn by FFI, /bin/true',
            self::ProcOpenPhp => 'proc_open, php -n',
            self::PosixSpawnPhp => 'posix_spawn by FFI, php -n',
            self::Worker => 'tasks through one worker, one at a time',
        };
    }

    /** Returns why this PHP lacks the way; null when it has it. */
    public function missing(): ?string
    {
        return match ($this) {
            self::Thread => match (true) {
                class_exists('parallel\Runtime', false) => null,
                (bool) \PHP_ZTS => 'ext-parallel is not loaded',
                default => 'this PHP is not thread-safe',
            },
            self::Fork, self::ForkTwice => \function_exists('pcntl_fork') ? null : 'ext-pcntl is not loaded',
            self::ProcOpen, self::ProcOpenPhp => \function_exists('proc_open') ? null : 'proc_open is disabled',
            self::PosixSpawn, self::PosixSpawnPhp => match (true) {
                !\extension_loaded('FFI') => 'ext-ffi is not loaded',
                !\function_exists('pcntl_wait') => 'ext-pcntl is not loaded',
                default => null,
            },
            self::Worker => \extension_loaded('tokenizer') ? null : 'ext-tokenizer is not loaded',
        };
    }

    /** @return non-empty-list<string> the command that is run, for ways with one */
    public function command(): array
    {
        return $this === self::ProcOpenPhp || $this === self::PosixSpawnPhp
            ? [\PHP_BINARY, '-n', '-r', '']
            : ['/bin/true'];
    }
}
