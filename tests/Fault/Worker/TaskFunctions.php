<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use Spindle\Tests\Text;
use Spindle\Worker\TaskContext;

/** Functions that the tasks of these tests call. */
final class TaskFunctions
{
    /** @var list<mixed> values that are kept until the process ends */
    public static array $kept = [];

    public static function square(int $number): int
    {
        return $number * $number;
    }

    public static function same(mixed $value): mixed
    {
        return $value;
    }

    /** Returns the id of the worker's process or thread. A signal to a thread ends its process. */
    public static function pid(): int
    {
        return (int) basename((string) readlink('/proc/thread-self'));
    }

    public static function end(ProcessEnding $ending): never
    {
        $ending->happens();
    }

    public static function size(string $bytes): int
    {
        return \strlen($bytes);
    }

    public static function bytes(int $size): string
    {
        return str_repeat('r', $size);
    }

    /** Announces its start, and takes some time. */
    public static function sleep(string $file, float $seconds = 60.0): string
    {
        self::announce($file);
        for ($end = hrtime(true) + (int) ($seconds * 1e9); hrtime(true) < $end;) {
            usleep(1000);
        }

        return 'slept';
    }

    /** @return resource|\Closure|false a value that cannot be serialized */
    public static function unserializable(bool $closure): mixed
    {
        return $closure ? static fn(): int => 1 : tmpfile();
    }

    /** Returns a large result. SIGUSR1 causes the ending, whatever the worker is doing then. */
    public static function large(int $bytes, string $file, ProcessEnding $atSignal): string
    {
        pcntl_signal(\SIGUSR1, static fn() => $atSignal->happens());

        return self::largeAtCommand($bytes, $file);
    }

    /** Returns a large result. SIGUSR1 only interrupts system calls. */
    public static function interruptibleLarge(int $bytes, string $file): string
    {
        pcntl_signal(\SIGUSR1, static fn() => null, false);

        return self::largeAtCommand($bytes, $file);
    }

    /** Kills another worker, and then itself. */
    public static function killAnother(string $directory, int $number): never
    {
        self::announce("{$directory}/{$number}");
        do {
            usleep(1000);
            $others = glob("{$directory}/*");
            \assert($others !== false);
        } while (\count($others) < 2);
        foreach ($others as $other) {
            $pid = (int) file_get_contents($other);
            if ($pid !== getmypid()) {
                posix_kill($pid, \SIGKILL);
            }
        }
        usleep(20_000);
        posix_kill((int) getmypid(), \SIGKILL);
        throw new \LogicException('A signal was to end this');
    }

    public static function exhaustMemory(): int
    {
        $all = [];
        while (\count($all) < \PHP_INT_MAX) {
            $all[] = str_repeat('x', 1 << 20);
        }

        return \count($all);
    }

    public static function echo(int $bytes): string
    {
        for ($piece = str_repeat('o', 1 << 16); $bytes > 0; $bytes -= 1 << 16) {
            echo substr($piece, 0, $bytes);
        }

        return 'echoed';
    }

    public static function writeErrors(int $bytes): string
    {
        for ($piece = str_repeat('e', 1 << 16); $bytes > 0; $bytes -= 1 << 16) {
            $written = fwrite(\STDERR, substr($piece, 0, $bytes));
            \assert($written === min($bytes, 1 << 16));
        }

        return 'written';
    }

    /** Writes many bytes to standard error, then dies. */
    public static function complainAndDie(int $bytes): never
    {
        self::writeErrors($bytes);
        fwrite(\STDERR, 'the end');
        posix_kill((int) getmypid(), \SIGKILL);
        throw new \LogicException('A signal was to end this');
    }

    public static function report(int $count, int $bytes): string
    {
        for ($i = 0; $i < $count; ++$i) {
            TaskContext::current()->report(str_repeat('r', $bytes));
        }

        return 'reported';
    }

    /** Returns both in the worker and in a fork, which is no worker. */
    public static function forkAndReturn(): string
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            return 'the fork: ' . str_repeat('x', 100_000);
        }
        pcntl_waitpid($fork, $status);

        return 'the worker';
    }

    /** Creates a fork that returns after {@see waitForFork()} has begun in the worker. */
    public static function forkThatReturnsLate(string $path): null
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            while (!is_file("{$path}.started")) {
                usleep(1000);
            }

            return null;
        }
        file_put_contents($path, (string) $fork);

        return null;
    }

    public static function waitForFork(string $path): never
    {
        file_put_contents("{$path}.started", 'started ', \FILE_APPEND);
        pcntl_waitpid((int) file_get_contents($path), $status);
        for (; ;) {
            usleep(1000);
        }
    }

    public static function dieAfterFork(string $path): never
    {
        file_put_contents("{$path}.started", 'started ', \FILE_APPEND);
        pcntl_waitpid((int) file_get_contents($path), $status);
        ProcessEnding::Kill->happens();
    }

    public static function forkAndThrow(): string
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            throw new \RuntimeException('the fork');
        }
        pcntl_waitpid($fork, $status);

        return 'the worker';
    }

    public static function forkAndExit(): string
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            echo 'printed by the fork';
            exit(3);
        }
        pcntl_waitpid($fork, $status);

        return 'the worker';
    }

    /** @return \Generator<int, string> items of the worker; a fork yields as well */
    public static function forkAndYield(): \Generator
    {
        yield 'before';
        $fork = pcntl_fork();
        if ($fork === 0) {
            yield 'the fork';
            yield 'the fork again';
            exit(3);
        }
        pcntl_waitpid($fork, $status);
        yield 'the worker';
    }

    /** Leaves a fork that has all descriptors of the worker. */
    public static function forkThatLivesOn(): int
    {
        $fork = pcntl_fork();
        if ($fork === 0) {
            for (; ; sleep(100));
        }

        return $fork;
    }

    /**
     * @return list<int> ids of remaining processes: a child, one in a new session, the child of a process that ended
     */
    public static function leaveThings(string $directory): array
    {
        self::$kept[] = stream_socket_server('tcp://127.0.0.1:0');
        self::$kept[] = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::$kept[] = fopen('/dev/null', 'r');

        return self::startDescendants($directory);
    }

    /** Starts several kinds of descendants, then takes some time even after SIGTERM. */
    public static function sleepAmongDescendants(string $directory, string $file): string
    {
        self::startDescendants($directory);

        return self::sleep($file);
    }

    /** Writes to all sockets of the process, one of which belongs to the pool. */
    public static function writeToSockets(string $bytes): string
    {
        foreach ((array) scandir('/proc/self/fd') as $descriptor) {
            if (str_starts_with((string) @readlink("/proc/self/fd/{$descriptor}"), 'socket:')) {
                self::$kept[] = $socket = fopen("php://fd/{$descriptor}", 'w');
                \assert($socket !== false);
                fwrite($socket, $bytes);
            }
        }

        return 'written';
    }

    public static function closeStandardStreams(): string
    {
        fclose(\STDIN);
        fclose(\STDOUT);
        fclose(\STDERR);

        return 'closed';
    }

    public static function changeDirectory(string $directory): string
    {
        chdir($directory);

        return (string) getcwd();
    }

    /** @return string result of a class that nothing else loads */
    public static function loadAnother(): string
    {
        return LoadedLate::class . ' ' . LoadedLate::answer();
    }

    public static function ignoreTerm(string $file): string
    {
        pcntl_signal(\SIGTERM, static fn() => null);

        return self::sleep($file);
    }

    public static function stop(string $file): string
    {
        self::announce($file);
        posix_kill((int) getmypid(), \SIGSTOP);

        return 'continued';
    }

    /** Never sleeps before the file appears, so that a sleeping worker is known to wait for the pool. */
    private static function largeAtCommand(int $bytes, string $file): string
    {
        $large = str_repeat('x', $bytes);
        self::announce($file);
        while (!is_file("{$file}.go")) {
            clearstatcache();
        }

        return $large;
    }

    /** Writes the id of the worker to a file, atomically. */
    private static function announce(string $file): void
    {
        file_put_contents("{$file}.new", (string) self::pid());
        rename("{$file}.new", $file);
    }

    /** @return list<int> */
    private static function startDescendants(string $directory): array
    {
        foreach ([
            'sleep 1000',
            'exec setsid sleep 1000',
            '(setsid sh -c "trap \"\" TERM; sleep 1000 & wait" &)',
        ] as $line) {
            $pipes = [];
            self::$kept[] = proc_open(['sh', '-c', "echo $$ >> {$directory}/pids; {$line}"], [], $pipes);
        }
        do {
            usleep(1000);
            $pids = Text::numbersIn("{$directory}/pids");
        } while (\count($pids) < 3);

        return $pids;
    }
}
