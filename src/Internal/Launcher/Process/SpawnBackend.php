<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * Starts processes with posix_spawn, and waits for events with epoll. Calls the C library through FFI.
 * A signalfd reports SIGCHLD for exits of children and of adopted orphans (docs/decisions/0002-exit-events.md).
 *
 * After this process has closed a descriptor, epoll may still report events for that descriptor number, even if the
 * number is in use again. The reason is that a new child has a copy of the descriptor until the child's exec. Until
 * then, the number stays in the epoll set. Such an event is harmless: reads and writes do not block, and an event for
 * a number without a job is ignored.
 */
final class SpawnBackend implements Backend
{
    private const READ_BYTES = 1 << 18;

    /** Index of ru_maxrss (peak memory in KiB) in a struct rusage that is read as an array of longs. */
    private const MAXRSS_INDEX = 4;

    private readonly Libc $libc;
    private readonly Spawner $spawner;

    /** @var LibcFunctions functions of $libc */
    private readonly object $c;

    private readonly Epoll $epoll;

    /** A signalfd: descriptor from which received signals are read. */
    private readonly int $signals;

    /** A pidfd, readable when the pool's process has ended; -1 before Linux 5.3. */
    private readonly int $poolProcess;

    private readonly \FFI\CData $buffer;

    /** @var Integers */
    private readonly object $status;

    /** @var Integers memory for the struct rusage of wait4(), larger than that struct */
    private readonly object $usage;

    /** @var array<int, LauncherJob> by pid */
    private array $jobs = [];

    /** @var array<int, LauncherJob> by the launcher's end of the pipe from standard output */
    private array $outputs = [];

    /** @var array<int, LauncherJob> by the launcher's end of the pipe from standard error */
    private array $errors = [];

    /** @var array<int, LauncherJob> jobs whose input pipe is full, by the launcher's end of the pipe */
    private array $inputs = [];

    private bool $awaitingPool = false;

    public function __construct(private readonly JobScheduler $scheduler, string $token, int $poolPid)
    {
        $this->libc = new Libc();
        $this->c = $c = $this->libc->functions;

        $c->setsid();
        // PR_SET_CHILD_SUBREAPER: adopts the orphans of commands, so that they can be found and ended.
        $c->prctl(36, 1, 0, 0, 0);
        // PR_SET_PDEATHSIG, SIGCONT: when the pool's process dies, a suspended launcher continues, and ends its jobs.
        $c->prctl(1, 18, 0, 0, 0);
        $this->closeOnExec();

        $this->spawner = new Spawner($this->libc, $token);
        $this->buffer = $this->libc->new('char[' . self::READ_BYTES . ']');
        $this->status = $this->libc->integers('int[1]');
        $this->usage = $this->libc->integers('long[64]');

        $this->signals = $this->blockSignals();
        $this->epoll = new Epoll($this->libc);
        $this->epoll->watch(0, Epoll::READABLE);
        $this->epoll->watch($this->signals, Epoll::READABLE);
        $this->poolProcess = $c->syscall(434, $poolPid, 0); // pidfd_open
        if ($this->poolProcess >= 0) {
            $this->epoll->watch($this->poolProcess, Epoll::READABLE);
        }
        foreach ([0, 1] as $end) {
            $c->fcntl($end, 4, Libc::NONBLOCK | ($end === 0 ? 0 : 1)); // F_SETFL
            $c->fcntl($end, 1031, 1 << 20); // F_SETPIPE_SZ: a larger pipe saves wake-ups; a refusal is harmless
        }
        if ($c->getppid() !== $poolPid) {
            exit(0);
        }
    }

    public function name(): string
    {
        return 'posix_spawn';
    }

    public function maxConcurrency(): int
    {
        $limit = $this->libc->integers('uint64_t[2]');
        $this->c->getrlimit(7, $limit); // RLIMIT_NOFILE
        // A command without input needs two descriptors, and 24 are for the launcher. RLIM_INFINITY is -1 in PHP.
        return $limit[0] < 0 ? \PHP_INT_MAX : max(0, intdiv($limit[0] - 24, 2));
    }

    public function useEnvironment(array $environment): void
    {
        $this->spawner->useEnvironment($environment);
    }

    public function start(LauncherJob $job): bool
    {
        if (!$this->spawner->start($job)) {
            return false;
        }
        $this->jobs[$job->pid] = $job;
        if ($job->stdoutPipe >= 0) {
            $this->outputs[$job->stdoutPipe] = $job;
        }
        if ($job->stderrPipe >= 0) {
            $this->errors[$job->stderrPipe] = $job;
        }
        $this->listen($job, true);
        $this->feed($job);

        return true;
    }

    public function processes(): array
    {
        return array_map(static fn(LauncherJob $job): int => $job->id, $this->jobs);
    }

    public function wait(int $deadline, bool $isOutputPaused): void
    {
        $milliseconds = $deadline === 0
            ? -1
            : min(0x7FFF_FFFF, max(0, intdiv($deadline - hrtime(true) + 999_999, 1_000_000)));
        $isOutputPaused ? $this->waitForPool($milliseconds) : $this->handle($this->epoll->wait($milliseconds));
    }

    public function awaitExit(int $nanoseconds): void
    {
        $this->handle($this->epoll->poll([$this->signals => Epoll::READABLE], max(1, intdiv($nanoseconds, 1_000_000))));
    }

    public function send(string $bytes): string
    {
        $written = $this->c->write(1, $bytes, \strlen($bytes));
        if ($written === \strlen($bytes)) {
            if ($this->awaitingPool) {
                $this->awaitingPool = false;
                $this->epoll->unwatch(1);
            }

            return '';
        }
        if ($written < 0 && $this->libc->errno() !== Libc::EAGAIN && $this->libc->errno() !== Libc::EINTR) {
            $this->scheduler->poolEnded();

            return '';
        }
        if (!$this->awaitingPool) {
            $this->awaitingPool = true;
            $this->epoll->watch(1, Epoll::WRITABLE);
        }

        return $written > 0 ? substr($bytes, $written) : $bytes;
    }

    public function feed(LauncherJob $job): void
    {
        if ($job->stdinPipe < 0) {
            return;
        }
        if ($job->input !== '') {
            $written = $this->c->write($job->stdinPipe, $job->input, \strlen($job->input));
            if ($written < 0) {
                $error = $this->libc->errno();
                if ($error === Libc::EAGAIN || $error === Libc::EINTR) {
                    $this->awaitInput($job);

                    return;
                }
                $job->input = '';
                $this->scheduler->inputRefused($job);
                $this->closeInput($job);

                return;
            }
            $job->input = substr($job->input, $written);
            $this->scheduler->inputAccepted($job, $written);
        }
        if ($job->input !== '') {
            $this->awaitInput($job);
        } elseif (!$job->inputFollows) {
            $this->closeInput($job);
        } elseif (isset($this->inputs[$job->stdinPipe])) {
            $this->epoll->unwatch($job->stdinPipe);
            unset($this->inputs[$job->stdinPipe]);
        }
    }

    public function listen(LauncherJob $job, bool $listen): void
    {
        foreach ([$job->stdoutPipe, $job->stderrPipe] as $descriptor) {
            if ($descriptor >= 0) {
                $listen ? $this->epoll->watch($descriptor, Epoll::READABLE) : $this->epoll->unwatch($descriptor);
            }
        }
    }

    public function abandon(LauncherJob $job): void
    {
        unset($this->jobs[$job->pid]);
        $this->readRest($job);
    }

    public function signal(int $pid, int $signal): void
    {
        $this->c->kill($pid, $signal);
    }

    public function hasNoProcesses(): bool
    {
        // The only possible error is ECHILD: no child. Then no descendant exists, because this process adopts orphans.
        return $this->c->waitid(0, 0, $this->buffer, 1 | 4 | 0x01000000) < 0; // WNOHANG | WEXITED | WNOWAIT
    }

    /** Marks the inherited descriptors from 3 on as close-on-exec, so that commands do not inherit them. */
    private function closeOnExec(): void
    {
        if ($this->c->syscall(436, 3, 0xFFFFFFFF, 4) === 0) { // close_range(..., CLOSE_RANGE_CLOEXEC), Linux 5.11
            return;
        }
        foreach (Files::in('/proc/self/fd') as $descriptor) {
            if ((int) $descriptor > 2) {
                $this->c->fcntl((int) $descriptor, 2, 1); // F_SETFD, FD_CLOEXEC
            }
        }
    }

    private function blockSignals(): int
    {
        // Resets SIGCHLD. If this process had inherited an ignored SIGCHLD, the kernel would report no exits.
        $this->c->signal(17, null);
        $set = $this->libc->new('signal_set[1]');
        $this->c->sigemptyset($set);
        foreach ([17, 15, 2, 1] as $signal) { // CHLD, TERM, INT, HUP
            $this->c->sigaddset($set, $signal);
        }
        $this->c->sigprocmask(0, $set, null);

        return $this->c->signalfd(-1, $set, Libc::CLOEXEC | Libc::NONBLOCK);
    }

    /** Waits for the pool and for signals, but not for the pipes of jobs. */
    private function waitForPool(int $milliseconds): void
    {
        $descriptors = [0 => Epoll::READABLE, 1 => Epoll::WRITABLE, $this->signals => Epoll::READABLE];
        if ($this->poolProcess >= 0) {
            $descriptors[$this->poolProcess] = Epoll::READABLE;
        }
        $this->handle($this->epoll->poll($descriptors, $milliseconds));
    }

    /** @param array<int, true> $ready ready descriptors */
    private function handle(array $ready): void
    {
        if (isset($ready[0])) {
            $this->receive();
            unset($ready[0]);
        }
        if (isset($ready[$this->poolProcess])) {
            $this->scheduler->poolEnded();
        }
        // Exits come first, because most commands exit right after their last output, and collectExits() reads it too.
        if (isset($ready[$this->signals])) {
            $this->collectExits();
        }
        foreach ($ready as $descriptor => $_) {
            if (isset($this->outputs[$descriptor])) {
                $this->read($descriptor, $this->outputs[$descriptor], false);
            } elseif (isset($this->errors[$descriptor])) {
                $this->read($descriptor, $this->errors[$descriptor], true);
            } elseif (isset($this->inputs[$descriptor])) {
                $this->feed($this->inputs[$descriptor]);
            }
        }
    }

    private function receive(): void
    {
        $length = $this->c->read(0, $this->buffer, self::READ_BYTES);
        if ($length > 0) {
            $this->scheduler->received(\FFI::string($this->buffer, $length));
        } elseif ($length === 0 || ($this->libc->errno() !== Libc::EAGAIN && $this->libc->errno() !== Libc::EINTR)) {
            $this->scheduler->poolEnded();
        }
    }

    private function collectExits(): void
    {
        $size = $this->c->read($this->signals, $this->buffer, 128 * 16);
        $received = $size > 0 ? \FFI::string($this->buffer, $size) : '';
        for ($i = 0; $i < $size; $i += 128) {
            if (\ord($received[$i]) !== 17) {
                $this->scheduler->poolEnded(); // TERM, INT or HUP
            }
        }
        while (($pid = $this->c->wait4(-1, $this->status, 1, $this->usage)) > 0) {
            $job = $this->jobs[$pid] ?? null;
            if ($job === null) {
                $this->scheduler->orphanEnded();

                continue;
            }
            $status = $this->status[0];
            $job->memoryPeak = $this->usage[self::MAXRSS_INDEX] * 1024;
            unset($this->jobs[$pid]);
            $this->readRest($job);
            $signal = $status & 0x7F;
            $this->scheduler->exited($job, $signal === 0 ? ($status >> 8) & 0xFF : -1, $signal);
        }
    }

    /** Reads the output that the job's pipes contain now, and closes the pipes, even if a descendant still writes. */
    private function readRest(LauncherJob $job): void
    {
        if ($job->stdoutPipe >= 0) {
            $this->read($job->stdoutPipe, $job, false, true);
        }
        if ($job->stderrPipe >= 0) {
            $this->read($job->stderrPipe, $job, true, true);
        }
        if ($job->stdinPipe >= 0) {
            $this->closeInput($job);
        }
    }

    private function read(int $descriptor, LauncherJob $job, bool $isError, bool $last = false): void
    {
        $length = $this->c->read($descriptor, $this->buffer, self::READ_BYTES);
        if ($length > 0) {
            $this->scheduler->output($job, $isError, \FFI::string($this->buffer, $length));
        }
        // If the command has enlarged the pipe, one read may return only a part of its bytes: F_GETPIPE_SZ.
        for ($left = $last && $length === self::READ_BYTES ? $this->c->fcntl(
            $descriptor,
            1032,
        ) : 0; $left > 0 && $length > 0; $left -= $length) {
            $length = $this->c->read($descriptor, $this->buffer, self::READ_BYTES);
            if ($length > 0) {
                $this->scheduler->output($job, $isError, \FFI::string($this->buffer, $length));
            }
        }
        if ($last || $length === 0) {
            unset($this->outputs[$descriptor], $this->errors[$descriptor]);
            $this->c->close($descriptor);
            if ($isError) {
                $job->stderrPipe = -1;
            } else {
                $job->stdoutPipe = -1;
            }
        }
    }

    private function awaitInput(LauncherJob $job): void
    {
        if (!isset($this->inputs[$job->stdinPipe])) {
            $this->inputs[$job->stdinPipe] = $job;
            $this->epoll->watch($job->stdinPipe, Epoll::WRITABLE);
        }
    }

    private function closeInput(LauncherJob $job): void
    {
        unset($this->inputs[$job->stdinPipe]);
        $this->c->close($job->stdinPipe);
        $job->stdinPipe = -1;
    }
}
