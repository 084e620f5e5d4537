<?php

declare(strict_types=1);

namespace Spindle\Command\Internal\Launcher;

use Spindle\Command\Internal\Protocol;

/**
 * Starts processes with PHP's own proc_open and waits in stream_select: what is left where FFI is not.
 *
 * Each child holds one more pipe, whose end of file announces its exit; with pcntl, SIGCHLD interrupts the wait as well,
 * for a child whose descendants keep that pipe open. Where neither can tell, a look every now and then does, while
 * commands run (docs/decisions/0003-without-ffi.md). Children share the launcher's process group, so that trees are
 * found in /proc; orphans that have left them are only found by their environment.
 */
final class ProcOpenBackend implements Backend
{
    private const EXIT_PIPE = 3;
    private const READ_SIZE = 1 << 16;

    /** What a process may enlarge a pipe to (/proc/sys/fs/pipe-max-size, by default), in bytes. */
    private const LARGEST_PIPE = 1 << 20;

    /** stream_select takes no descriptor from here on. */
    private const SELECTABLE = 1024;

    /** Descriptors beyond those that the launcher has from its start, for what it opens for a moment. */
    private const RESERVED = 16;

    /** A string of this size, in bytes, or longer, exec refuses (MAX_ARG_STRLEN: 32 pages). */
    private const ARGUMENT_LIMIT = 131072;

    /** Between two looks for exits that nothing announced, in nanoseconds. */
    private const LOOK_WITH_PCNTL = 1_000_000_000;
    private const LOOK_WITHOUT = 100_000_000;
    private const FIRST_LOOK = 1_000_000;

    /** @var array<string, string> name => `NAME=value`, what each job starts from */
    private array $variables = [];

    /** @var array<int, Job> by id */
    private array $jobs = [];

    /** @var array<int, Job> of them: their exit pipe is closed, their process was still there */
    private array $exiting = [];

    /** @var array<int, array{exitcode: int, signaled: bool, termsig: int}> known already, by the job's id */
    private array $statuses = [];

    /** @var array<int, resource> what is read, by the stream's number */
    private array $reads = [];

    /** @var array<int, resource> what waits to be written */
    private array $writes = [];

    /** @var array<int, array{Job, int}> whose stream it is, and the child's descriptor, by the stream's number */
    private array $of = [];

    /** @var resource /dev/null */
    private readonly mixed $null;

    private int $look = self::FIRST_LOOK;
    private int $open = 0;
    private readonly int $descriptors;
    /** @var list<resource|null> handles of processes that can't be ended */
    private array $abandoned = [];
    private bool $childEnded = false;
    private bool $everStarted = false;

    public function __construct(private readonly Supervisor $supervisor, private readonly string $token, private readonly int $poolPid)
    {
        $this->descriptors = self::descriptors();
        $null = fopen('/dev/null', 'r+e');
        \assert($null !== false);
        $this->null = $null;
        foreach ([\STDIN, \STDOUT] as $stream) {
            stream_set_blocking($stream, false);
        }
        stream_set_read_buffer(\STDIN, 0);
        stream_set_write_buffer(\STDOUT, 0);
        if (\function_exists('posix_setsid')) {
            posix_setsid();
        }
        if (\function_exists('pcntl_signal')) {
            $this->takeSignals();
        }
    }

    public function name(): string
    {
        return 'proc_open';
    }

    public function capacity(): int
    {
        return intdiv($this->descriptors, 3);
    }

    public function useEnvironment(array $environment): void
    {
        $this->variables = [];
        foreach (array_keys(getenv(null, true)) as $name) {
            putenv("{$name}");
        }
        foreach ($environment as $variable) {
            $this->variables[explode('=', $variable, 2)[0]] = $variable;
            putenv($variable);
        }
    }

    public function start(Job $job): bool
    {
        Programs::enter($job->directory);
        $environment = $this->environmentOf($job);
        $this->checkSize([...($job->arguments === [] ? [$job->line] : $job->arguments), ...($environment ?? array_values($this->variables))]);
        $path = $job->path($this->variables);
        $command = $job->arguments === [] ? $job->line : $this->checked($job->arguments, $path);
        $descriptors = $this->descriptorsOf($job);
        if ($this->open + \count($descriptors) > $this->descriptors) {
            return false;
        }
        // From PHP 8.3 on, the program is looked up in this process's own PATH.
        putenv($path === null ? 'PATH' : "PATH={$path}");
        error_clear_last();
        // @phpstan-ignore argument.type (what has no name is taken as it stands)
        $process = @proc_open($command, $descriptors, $pipes, null, $environment);
        if ($process === false) {
            return $this->refused(error_get_last()['message'] ?? 'proc_open failed');
        }
        $this->everStarted = true;
        $job->process = $process;
        $job->pipes = $pipes;
        $this->jobs[$job->id] = $job;
        $this->open += \count($pipes);
        foreach ($pipes as $descriptor => $pipe) {
            stream_set_read_buffer($pipe, 0);
            $this->of[(int) $pipe] = [$job, $descriptor];
        }
        $this->reads[(int) $pipes[self::EXIT_PIPE]] = $pipes[self::EXIT_PIPE];
        $this->listen($job, true);
        if (isset($pipes[0])) {
            stream_set_blocking($pipes[0], false);
            stream_set_write_buffer($pipes[0], 0);
            $this->feed($job);
        }

        return true;
    }

    public function pidOf(Job $job): int
    {
        if ($job->pid === 0 && $job->process !== null) {
            $status = proc_get_status($job->process);
            $job->pid = $status['pid'];
            if (!$status['running']) {
                // The question has taken the exit, and before PHP 8.3 that is told once.
                $this->statuses[$job->id] = $status;
                $this->exiting[$job->id] = $job;
                $this->look = 0;
            }
        }

        return $job->pid;
    }

    public function wait(int $deadline, bool $onlyPool): void
    {
        $now = hrtime(true);
        $look = $this->jobs === [] ? \PHP_INT_MAX : $now + match (true) {
            $this->exiting !== [] => $this->look,
            \function_exists('pcntl_signal') => self::LOOK_WITH_PCNTL,
            default => self::LOOK_WITHOUT,
        };
        $until = $deadline === 0 ? $look : min($deadline, $look);
        $left = (int) max(0, $until - $now);
        $reads = $onlyPool ? [\STDIN] : [\STDIN, ...$this->reads];
        $writes = $onlyPool ? [] : $this->writes;
        if ($onlyPool && $deadline !== 1) {
            $writes[] = \STDOUT;
        }
        $none = null;
        $count = $until === \PHP_INT_MAX
            ? @stream_select($reads, $writes, $none, null)
            : @stream_select($reads, $writes, $none, intdiv($left, 1_000_000_000), intdiv($left % 1_000_000_000, 1000) + 1);
        if (\function_exists('pcntl_signal_dispatch')) {
            pcntl_signal_dispatch();
        }
        $exits = [];
        if ($count !== false && $count > 0) {
            $exits = $this->handle($reads, $writes);
        }
        $this->takeExits($exits, $count === 0 && $until === $look);
    }

    public function awaitExit(int $nanoseconds): void
    {
        usleep(max(1, intdiv($nanoseconds, 1000))); // which SIGCHLD interrupts, where there is pcntl
        if (\function_exists('pcntl_signal_dispatch')) {
            pcntl_signal_dispatch();
        }
        $this->takeExits([], true);
    }

    public function send(string $bytes): string
    {
        $written = @fwrite(\STDOUT, $bytes);
        if ($written === false) {
            $this->supervisor->poolGone();

            return '';
        }
        if ($written < \strlen($bytes)) {
            $this->writes[(int) \STDOUT] = \STDOUT;
        } else {
            unset($this->writes[(int) \STDOUT]);
        }

        return substr($bytes, $written);
    }

    public function feed(Job $job): void
    {
        $pipe = $job->pipes[0] ?? null;
        if ($pipe === null) {
            return;
        }
        if ($job->input !== '') {
            $written = @fwrite($pipe, $job->input);
            if ($written === false) {
                $job->input = '';
                $this->supervisor->inputRefused($job);
                $this->close($job, 0);

                return;
            }
            $job->input = substr($job->input, $written);
            if ($written > 0) {
                $this->supervisor->inputTaken($job, $written);
            }
        }
        if ($job->input !== '') {
            $this->writes[(int) $pipe] = $pipe;
        } elseif ($job->inputFollows) {
            unset($this->writes[(int) $pipe]);
        } else {
            $this->close($job, 0);
        }
    }

    public function listen(Job $job, bool $listen): void
    {
        foreach ([1, 2] as $descriptor) {
            $pipe = $job->pipes[$descriptor] ?? null;
            if ($pipe !== null && $listen) {
                $this->reads[(int) $pipe] = $pipe;
            } elseif ($pipe !== null) {
                unset($this->reads[(int) $pipe]);
            }
        }
    }

    public function abandon(Job $job): void
    {
        unset($this->jobs[$job->id], $this->exiting[$job->id]);
        $this->takeRest($job);
        foreach (array_keys($job->pipes) as $descriptor) {
            $this->close($job, $descriptor);
        }
        // Releasing the handle would wait for the process.
        $this->abandoned[] = $job->process;
        $job->process = null;
    }

    /** When this process ends PHP waits for each process that it has a handle of, so it must not end in the usual way. */
    public function __destruct()
    {
        if ($this->abandoned !== [] || $this->jobs !== []) {
            Signals::send((int) getmypid(), 9);
        }
    }

    public function signal(int $pid, int $signal): void
    {
        Signals::send($pid, $signal);
    }

    public function isDeserted(): bool
    {
        return !$this->everStarted;
    }

    /** Signals that a handler takes are default ones again after exec, as ignored and blocked ones are not. */
    private function takeSignals(): void
    {
        pcntl_sigprocmask(\SIG_SETMASK, []);
        pcntl_signal(\SIGPIPE, static fn() => null);
        pcntl_signal(\SIGCHLD, function (): void {
            $this->childEnded = true;
        }, false);
        foreach ([\SIGTERM, \SIGINT, \SIGHUP] as $signal) {
            pcntl_signal($signal, function (): void {
                $this->supervisor->poolGone();
            }, false);
        }
    }

    /** Those that jobs may have: some of the numbers that stream_select takes are in use, and can't be closed from PHP. */
    private static function descriptors(): int
    {
        $limit = \function_exists('posix_getrlimit') ? (posix_getrlimit()['soft openfiles'] ?? self::SELECTABLE) : self::SELECTABLE;
        $limit = min(\is_int($limit) ? $limit : self::SELECTABLE, self::SELECTABLE);
        $taken = array_filter(Files::in('/proc/self/fd'), static fn(string $descriptor): bool => (int) $descriptor < $limit);

        return max(0, $limit - self::RESERVED - \count($taken));
    }

    /**
     * Refuses what exec would refuse with E2BIG: see execve(2), "Limits on size of arguments and environment".
     *
     * @param list<string> $strings arguments and environment
     *
     * @throws StartFailure
     */
    private function checkSize(array $strings): void
    {
        $size = 0;
        foreach ($strings as $string) {
            $length = \strlen($string);
            if ($length >= self::ARGUMENT_LIMIT) {
                throw new StartFailure(126, 'Argument list too long');
            }
            $size += $length + 9; // its NUL, and its address
        }
        if ($size > self::ARGUMENT_LIMIT && $size > $this->sizeLimit()) {
            throw new StartFailure(126, 'Argument list too long');
        }
    }

    /** In bytes: a quarter of what the stack may have, but no more than three quarters of 8 MiB. */
    private function sizeLimit(): int
    {
        $stack = \function_exists('posix_getrlimit') ? (posix_getrlimit()['soft stack'] ?? null) : null;

        return min(6 << 20, \is_int($stack) ? intdiv($stack, 4) : 2 << 20) - 4096;
    }

    /**
     * What exec would refuse is refused here, for proc_open tells of it as of a command that ended with 127.
     *
     * @param non-empty-list<string> $arguments
     *
     * @return non-empty-list<string>
     *
     * @throws StartFailure
     */
    private function checked(array $arguments, ?string $path): array
    {
        $file = $arguments[0];
        if (!str_contains($file, '/')) {
            $file = Programs::find($file, $path ?? Programs::DEFAULT_PATH);
            // Otherwise it is left to exec to find it again, so that the program is called by the name given.
            $arguments[0] = $path === null ? $file : $arguments[0];
        }
        clearstatcache(true, $file);
        if (!file_exists($file)) {
            throw new StartFailure(127, 'No such file or directory');
        }
        if (!is_file($file) || !is_executable($file)) {
            throw new StartFailure(126, 'Permission denied');
        }
        Programs::checkFormat($file);

        return $arguments;
    }

    /** @return array<int, list<string>|resource> */
    private function descriptorsOf(Job $job): array
    {
        $flags = $job->flags;
        $null = $this->null;
        $descriptors = [
            ($flags & (Protocol::INPUT_INLINE | Protocol::INPUT_FOLLOWS)) !== 0 ? ['pipe', 'r'] : $null,
            ['pipe', 'w'],
            ['pipe', 'w'],
            self::EXIT_PIPE => ['pipe', 'w'],
        ];
        if (($flags & Protocol::DISCARD_STDOUT) !== 0) {
            $descriptors[1] = $null;
        } elseif (($flags & Protocol::INHERIT_STDOUT) !== 0) {
            $stdout = fopen('php://fd/3', 'w');
            $descriptors[1] = $stdout === false ? $null : $stdout;
        }
        if (($flags & Protocol::DISCARD_STDERR) !== 0) {
            $descriptors[2] = $null;
        } elseif (($flags & Protocol::INHERIT_STDERR) !== 0) {
            $descriptors[2] = \STDERR;
        }

        return $descriptors;
    }

    /**
     * @return list<string>|null as `NAME=value`, for by names proc_open would drop empty values; null for the launcher's
     *                           own environment, which costs it least
     */
    private function environmentOf(Job $job): ?array
    {
        $marker = Protocol::MARKER . "={$this->token}.{$job->id}";
        if ($job->changes === []) {
            putenv($marker);

            return null;
        }

        return [$marker, ...array_values($job->environment($this->variables))];
    }

    /** @throws StartFailure */
    private function refused(string $message): bool
    {
        if (preg_match('/Too many open files|Resource temporarily unavailable|Cannot allocate memory/i', $message) === 1) {
            return false;
        }

        throw new StartFailure(str_contains($message, 'No such file') ? 127 : 126, $message);
    }

    /**
     * @param array<resource> $reads
     * @param array<resource> $writes
     *
     * @return array<int, Job> those whose exit pipe was closed
     */
    private function handle(array $reads, array $writes): array
    {
        $exits = [];
        foreach ($reads as $stream) {
            if ($stream === \STDIN) {
                $this->receive();

                continue;
            }
            [$job, $descriptor] = $this->of[(int) $stream] ?? [null, 0];
            if ($job === null) {
                continue;
            }
            if ($descriptor === self::EXIT_PIPE) {
                $this->close($job, $descriptor);
                $exits[$job->id] = $job;
            } else {
                $this->read($job, $descriptor);
            }
        }
        foreach ($writes as $stream) {
            if (isset($this->of[(int) $stream])) {
                $this->feed($this->of[(int) $stream][0]);
            }
        }

        return $exits;
    }

    private function receive(): void
    {
        $bytes = @fread(\STDIN, self::READ_SIZE);
        if ($bytes !== '' && $bytes !== false) {
            $this->supervisor->received($bytes);
        } elseif (feof(\STDIN)) {
            $this->supervisor->poolGone();
        }
    }

    /**
     * @param array<int, Job> $announced
     * @param bool            $look whether it is time to look at all of them
     */
    private function takeExits(array $announced, bool $look): void
    {
        if ($look && \function_exists('posix_getppid') && posix_getppid() !== $this->poolPid) {
            $this->supervisor->poolGone(); // a fork of it still holds the pipe
        }
        $candidates = $announced + $this->exiting;
        if ($look || ($this->childEnded && $candidates === [])) {
            $candidates = $this->jobs;
        }
        $this->childEnded = false;
        foreach ($candidates as $id => $job) {
            if ($job->process === null) {
                continue;
            }
            if (isset($this->statuses[$id])) {
                $status = $this->statuses[$id];
                unset($this->statuses[$id], $this->exiting[$id]);
                $this->exited($job, $status);

                continue;
            }
            $status = proc_get_status($job->process);
            // Its descriptors are closed a moment before a process can be waited for.
            for ($i = 0; $status['running'] && isset($announced[$id]) && $i < 20; ++$i) {
                $status = proc_get_status($job->process);
            }
            if (!$status['running']) {
                unset($this->exiting[$id]);
                $this->exited($job, $status);
            } elseif (isset($announced[$id])) {
                $this->exiting[$id] = $job;
                $this->look = self::FIRST_LOOK;
            }
        }
        if ($look) {
            $this->look = min(max(self::FIRST_LOOK, $this->look * 2), 50 * self::FIRST_LOOK);
        }
    }

    /** @param array{exitcode: int, signaled: bool, termsig: int} $status */
    private function exited(Job $job, array $status): void
    {
        unset($this->jobs[$job->id]);
        $this->takeRest($job);
        foreach (array_keys($job->pipes) as $descriptor) {
            $this->close($job, $descriptor);
        }
        \assert(\is_resource($job->process));
        proc_close($job->process);
        $job->process = null;
        $this->supervisor->exited($job, $status['signaled'] ? -1 : $status['exitcode'], $status['signaled'] ? $status['termsig'] : 0);
    }

    /**
     * Takes what the process left in its pipes, and no more than they can hold: a descendant may still be writing. As
     * the streams block, only those are read that have something to give.
     */
    private function takeRest(Job $job): void
    {
        $rest = 0;
        $none = null;
        while ($rest < 2 * self::LARGEST_PIPE && ($readable = array_intersect_key($job->pipes, [1 => true, 2 => true])) !== []) {
            if (@stream_select($readable, $none, $none, 0) < 1) {
                break;
            }
            foreach (array_keys($readable) as $descriptor) {
                $rest += $this->read($job, $descriptor);
            }
        }
    }

    /** @return int bytes */
    private function read(Job $job, int $descriptor): int
    {
        $pipe = $job->pipes[$descriptor];
        $bytes = @fread($pipe, self::READ_SIZE);
        $length = \strlen((string) $bytes);
        if ($length > 0) {
            $this->supervisor->output($job, $descriptor === 2, (string) $bytes);
        } elseif (feof($pipe)) {
            $this->close($job, $descriptor);
        }

        return $length;
    }

    private function close(Job $job, int $descriptor): void
    {
        $pipe = $job->pipes[$descriptor];
        unset($this->reads[(int) $pipe], $this->writes[(int) $pipe], $this->of[(int) $pipe], $job->pipes[$descriptor]);
        fclose($pipe);
        --$this->open;
    }
}
