<?php

declare(strict_types=1);

/*
 * Types that only PHPStan needs. No class implements these interfaces, and no process loads them.
 */

namespace Spindle\Internal\Launcher\Process;

/**
 * The type of a C array of integers in FFI.
 *
 * @extends \ArrayAccess<int, int>
 */
interface Integers extends \ArrayAccess
{
    public function offsetGet(mixed $offset): int;
}

/** The types of the C functions that {@see Libc} declares. */
interface LibcFunctions
{
    public function posix_spawn(
        Integers $pid,
        string $path,
        \FFI\CData $actions,
        \FFI\CData $attributes,
        \FFI\CData $argv,
        \FFI\CData $envp,
    ): int;

    public function posix_spawn_file_actions_init(\FFI\CData $actions): int;

    public function posix_spawn_file_actions_adddup2(\FFI\CData $actions, int $from, int $to): int;

    public function posix_spawn_file_actions_destroy(\FFI\CData $actions): int;

    public function posix_spawnattr_init(\FFI\CData $attributes): int;

    public function posix_spawnattr_setflags(\FFI\CData $attributes, int $flags): int;

    public function posix_spawnattr_setpgroup(\FFI\CData $attributes, int $group): int;

    public function posix_spawnattr_setsigmask(\FFI\CData $attributes, \FFI\CData $set): int;

    public function posix_spawnattr_setsigdefault(\FFI\CData $attributes, \FFI\CData $set): int;

    public function sigemptyset(\FFI\CData $set): int;

    public function sigaddset(\FFI\CData $set, int $signal): int;

    public function sigprocmask(int $how, \FFI\CData $set, ?\FFI\CData $old): int;

    public function signal(int $signal, ?\FFI\CData $handler): mixed;

    public function signalfd(int $descriptor, \FFI\CData $set, int $flags): int;

    public function pipe2(Integers $ends, int $flags): int;

    public function open(string $path, int $flags): int;

    public function fcntl(int $descriptor, int $operation, int ...$argument): int;

    public function close(int $descriptor): int;

    public function dup2(int $from, int $to): int;

    public function read(int $descriptor, \FFI\CData $buffer, int $size): int;

    public function write(int $descriptor, string $bytes, int $size): int;

    public function epoll_create1(int $flags): int;

    public function epoll_ctl(int $epoll, int $operation, int $descriptor, string $event): int;

    public function epoll_wait(int $epoll, \FFI\CData $events, int $count, int $milliseconds): int;

    public function poll(\FFI\CData $descriptors, int $count, int $milliseconds): int;

    public function wait4(int $pid, Integers $status, int $options, Integers $usage): int;

    public function waitid(int $idType, int $id, \FFI\CData $information, int $options): int;

    public function kill(int $pid, int $signal): int;

    public function getrlimit(int $resource, Integers $limits): int;

    public function getppid(): int;

    public function chdir(string $path): int;

    public function setsid(): int;

    public function prctl(int $operation, int $a, int $b, int $c, int $d): int;

    public function syscall(int $number, int ...$arguments): int;

    public function strerror(int $error): string;

    public function __errno_location(): Integers;

    public function argz_extract(\FFI\CData $strings, int $size, \FFI\CData $pointers): void;
}
