<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Functions of the C library, through FFI. Opaque structs have extra space, so that those of glibc and musl fit. */
final class Libc
{
    public const EINTR = 4;
    public const EAGAIN = 11;
    public const SIGKILL = 9;

    /** Flags of open(), pipe2() and other functions that create descriptors. */
    public const CLOEXEC = 0o2000000;
    public const NONBLOCK = 0o4000;

    private const DECLARATIONS = <<<'C'
        typedef struct { char opaque[1024]; } spawn_actions;
        typedef struct { char opaque[1024]; } spawn_attributes;
        typedef struct { char opaque[256]; } signal_set;
        int posix_spawn(int *pid, const char *path, spawn_actions *actions, spawn_attributes *attributes,
            const void *argv, const void *envp);
        int posix_spawn_file_actions_init(spawn_actions *);
        int posix_spawn_file_actions_adddup2(spawn_actions *, int, int);
        int posix_spawn_file_actions_destroy(spawn_actions *);
        int posix_spawnattr_init(spawn_attributes *);
        int posix_spawnattr_setflags(spawn_attributes *, short);
        int posix_spawnattr_setpgroup(spawn_attributes *, int);
        int posix_spawnattr_setsigmask(spawn_attributes *, const signal_set *);
        int posix_spawnattr_setsigdefault(spawn_attributes *, const signal_set *);
        int sigemptyset(signal_set *);
        int sigaddset(signal_set *, int);
        int sigprocmask(int how, const signal_set *, signal_set *);
        void *signal(int, void *);
        int signalfd(int, const signal_set *, int);
        int pipe2(int *, int);
        int open(const char *, int, ...);
        int fcntl(int, int, ...);
        int dup2(int, int);
        int close(int);
        long read(int, void *, unsigned long);
        long write(int, const char *, unsigned long);
        int epoll_create1(int);
        int epoll_ctl(int, int, int, const char *);
        int epoll_wait(int, void *, int, int);
        int poll(void *, unsigned long, int);
        int wait4(int, int *, int, long *);
        int waitid(int, unsigned, void *, int);
        int kill(int, int);
        int getrlimit(int, void *);
        int getppid(void);
        int chdir(const char *);
        int setsid(void);
        int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
        long syscall(long, ...);
        const char *strerror(int);
        int *__errno_location(void);
        C;

    /** Functions that only glibc has. */
    private const GNU_DECLARATIONS = 'void argz_extract(const void *, unsigned long, void *);';

    /** @var LibcFunctions the declared functions */
    public readonly object $functions;

    public readonly bool $hasArgz;

    private readonly \FFI $ffi;

    /** Instance that {@see available()} returns; false if there is none, null before the first call. */
    private static self|false|null $available = null;

    public function __construct()
    {
        try {
            $ffi = \FFI::cdef(self::DECLARATIONS . self::GNU_DECLARATIONS);
        } catch (\FFI\Exception) {
            $ffi = null;
        }
        $this->hasArgz = $ffi !== null;
        $this->ffi = $ffi ?? \FFI::cdef(self::DECLARATIONS);
        $this->functions = $this->asFunctions();
    }

    /** Returns a shared instance; null if PHP has no FFI or does not allow it, or if the system lacks a function. */
    public static function available(): ?self
    {
        try {
            self::$available ??= \extension_loaded('FFI') ? new self() : false;
        } catch (\FFI\Exception) {
            self::$available = false;
        }

        return self::$available === false ? null : self::$available;
    }

    public function new(string $type): \FFI\CData
    {
        return $this->ffi->new($type) ?? throw new \LogicException("Can't allocate {$type}");
    }

    /** @return Integers */
    public function integers(string $type): object
    {
        // @phpstan-ignore return.type (an array of integers in C is accessed like one in PHP)
        return $this->new($type);
    }

    public function address(\FFI\CData $array): int
    {
        $address = $this->integers('uint64_t[1]');
        $pointer = \FFI::addr($array);
        // @phpstan-ignore argument.type (an array in C, whatever its type)
        \FFI::memcpy($address, \FFI::addr($pointer), 8);

        return $address[0];
    }

    public function errno(): int
    {
        return $this->functions->__errno_location()[0];
    }

    public function message(int $error): string
    {
        return $this->functions->strerror($error);
    }

    /** @return LibcFunctions */
    private function asFunctions(): object
    {
        // @phpstan-ignore return.type (FFI offers the declared functions as its methods)
        return $this->ffi;
    }
}
