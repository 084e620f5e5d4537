<?php

declare(strict_types=1);

namespace Spindle\Command\Internal\Launcher;

use Spindle\Command\Internal\Protocol;

/**
 * Starts processes with posix_spawn and hears of everything through one epoll instance, by way of FFI.
 *
 * Children get a process group of their own, default signals, an empty signal mask and no descriptor beyond 2: every
 * other one is close-on-exec. Their exits come as SIGCHLD through a signalfd, which serves orphans that the launcher
 * adopts as well as its own children (docs/decisions/0002-exit-events.md compares it with a pidfd for each child).
 *
 * A read can find a descriptor closed and opened again since epoll reported it, and a child that has just been spawned
 * holds copies of ours until its exec is through, which keeps a closed one in the epoll set for that long. Both are
 * harmless here because every descriptor in the set is non-blocking and an event without a job is passed over.
 */
final class SpawnBackend implements Backend
{
    private const STDOUT_OF_POOL = 3;
    private const READ_SIZE = 1 << 18;
    private const MAX_EVENTS = 256;
    private const KEPT_ACTIONS = 512;
    private const EPOLLIN = 1;
    private const EPOLLOUT = 4;
    private const POLLIN = 1;
    private const POLLOUT = 4;
    private const CLOEXEC = 0o2000000;
    private const NONBLOCK = 0o4000;

    private readonly Libc $libc;

    /** @var LibcFunctions the same functions as typed methods */
    private readonly object $c;

    private readonly int $epoll;
    private readonly int $signals;

    /** A descriptor that becomes readable when the pool's process ends; -1 where the kernel has none (before 5.3). */
    private readonly int $poolProcess;

    private readonly int $null;

    /** Size of a struct epoll_event in 32-bit words, and where its descriptor lies: it is packed on x86-64 alone. */
    private readonly int $eventWords;

    private readonly \FFI\CData $events;
    private readonly \FFI\CData $buffer;
    /** @var Integers */
    private readonly object $pipe;

    /** @var Integers */
    private readonly object $pid;

    /** @var Integers */
    private readonly object $status;

    private readonly \FFI\CData $attributes;
    private readonly Vector $arguments;
    private readonly Vector $environment;

    /** @var array<string, string> name => `NAME=value`, what each job starts from */
    private array $variables = [];
    private string $environmentOf = '';

    /** @var array<string, string> path by "PATH\0program" */
    private array $found = [];

    /** @var array<string, \FFI\CData> file actions by the three descriptors that a child gets */
    private array $actions = [];

    /** @var array<int, Job> by pid */
    private array $jobs = [];

    /** @var array<int, Job> by the descriptor of our end of the pipe */
    private array $outputs = [];

    /** @var array<int, Job> */
    private array $errors = [];

    /** @var array<int, Job> */
    private array $inputs = [];

    private bool $awaitingPool = false;
    private readonly YoungJobs $young;

    public function __construct(private readonly Supervisor $supervisor, private readonly string $token, int $poolPid)
    {
        $this->young = new YoungJobs();
        $this->libc = new Libc();
        $this->c = $c = $this->libc->functions;

        $c->setsid();
        // PR_SET_CHILD_SUBREAPER: a command's orphans become ours, so that they can be found and ended.
        $c->prctl(36, 1, 0, 0, 0);
        $this->closeOnExec();

        $this->events = $this->libc->new('uint32_t[' . self::MAX_EVENTS * 4 . ']');
        $this->buffer = $this->libc->new('char[' . self::READ_SIZE . ']');
        $this->pipe = $this->libc->integers('int[2]');
        $this->pid = $this->libc->integers('int[1]');
        $this->status = $this->libc->integers('int[1]');
        $this->attributes = $this->libc->new('spawn_attributes[1]');
        $this->arguments = new Vector($this->libc);
        $this->environment = new Vector($this->libc);
        $this->eventWords = php_uname('m') === 'x86_64' ? 3 : 4;

        $this->null = $c->open('/dev/null', 2 | self::CLOEXEC);
        $this->signals = $this->takeSignals();
        $this->epoll = $c->epoll_create1(self::CLOEXEC);
        $this->watch(0, self::EPOLLIN);
        $this->watch($this->signals, self::EPOLLIN);
        $this->poolProcess = $c->syscall(434, $poolPid, 0); // pidfd_open
        if ($this->poolProcess >= 0) {
            $this->watch($this->poolProcess, self::EPOLLIN);
        }
        foreach ([0, 1] as $end) {
            $c->fcntl($end, 4, self::NONBLOCK | ($end === 0 ? 0 : 1)); // F_SETFL
            $c->fcntl($end, 1031, 1 << 20); // F_SETPIPE_SZ: fewer wake-ups in a burst; a refusal does no harm
        }
        if ($c->getppid() !== $poolPid) {
            exit(0);
        }
    }

    public function name(): string
    {
        return 'posix_spawn';
    }

    public function capacity(): int
    {
        $limit = $this->libc->integers('uint64_t[2]');
        $this->c->getrlimit(7, $limit); // RLIMIT_NOFILE
        // Two for each command, and some for the launcher itself; RLIM_INFINITY reads as -1.
        return $limit[0] < 0 ? \PHP_INT_MAX : max(0, intdiv($limit[0] - 24, 2));
    }

    public function useEnvironment(array $environment): void
    {
        $this->variables = [];
        foreach ($environment as $variable) {
            $this->variables[explode('=', $variable, 2)[0]] = $variable;
        }
        $this->environmentOf = "\0";
    }

    public function start(Job $job): bool
    {
        $path = $this->resolve($job);
        $this->arguments->fill($job->arguments === [] ? ['sh', '-c', $job->line] : $job->arguments);
        $this->setEnvironment($job);
        if (!$this->openPipes($job)) {
            $this->closePipes($job);

            return false;
        }

        $error = $this->spawn($path, $job);
        if ($error === 2 && !str_contains($job->arguments[0] ?? '/', '/')) { // ENOENT: the program has moved since it was found
            $this->found = [];
            $error = $this->spawn($this->resolve($job), $job);
        }
        if ($error !== 0) {
            $this->closePipes($job);
            if ($error === Libc::EAGAIN || $error === 12) { // no more processes, no memory
                return false;
            }

            throw new StartFailure($error === 2 ? 127 : 126, $this->libc->message($error));
        }

        $job->pid = $this->pid[0];
        $this->jobs[$job->pid] = $job;
        $this->openOurEnds($job);

        return true;
    }

    public function pidOf(Job $job): int
    {
        return $job->pid;
    }

    public function wait(int $deadline, bool $onlyPool): void
    {
        while (($job = $this->young->next($deadline)) !== null) {
            $this->listen($job, true);
        }
        $milliseconds = $deadline === 0 ? -1 : max(0, intdiv($deadline - hrtime(true) + 999_999, 1_000_000));
        if ($onlyPool) {
            $this->waitForPool($milliseconds);

            return;
        }
        $count = $this->c->epoll_wait($this->epoll, $this->events, self::MAX_EVENTS, $milliseconds);
        if ($count <= 0) {
            return;
        }
        /** @var array<int, int> $words from 1 */
        $words = unpack('V*', \FFI::string($this->events, $count * $this->eventWords * 4));
        $ready = [];
        for ($i = $this->eventWords - 1, $end = $count * $this->eventWords; $i <= $end; $i += $this->eventWords) {
            $ready[$words[$i]] = true;
        }
        $this->handle($ready);
    }

    public function send(string $bytes): string
    {
        $written = $this->c->write(1, $bytes, \strlen($bytes));
        if ($written === \strlen($bytes)) {
            if ($this->awaitingPool) {
                $this->awaitingPool = false;
                $this->unwatch(1);
            }

            return '';
        }
        if ($written < 0 && $this->libc->errno() !== Libc::EAGAIN && $this->libc->errno() !== Libc::EINTR) {
            $this->supervisor->poolGone();

            return '';
        }
        if (!$this->awaitingPool) {
            $this->awaitingPool = true;
            $this->watch(1, self::EPOLLOUT);
        }

        return $written > 0 ? substr($bytes, $written) : $bytes;
    }

    public function feed(Job $job): void
    {
        if ($job->in < 0) {
            return;
        }
        if ($job->input !== '') {
            $written = $this->c->write($job->in, $job->input, \strlen($job->input));
            if ($written < 0) {
                $error = $this->libc->errno();
                if ($error === Libc::EAGAIN || $error === Libc::EINTR) {
                    $this->awaitInput($job);

                    return;
                }
                $job->input = '';
                $this->supervisor->inputRefused($job);
                $this->closeInput($job);

                return;
            }
            $job->input = substr($job->input, $written);
            $this->supervisor->inputTaken($job, $written);
        }
        if ($job->input !== '') {
            $this->awaitInput($job);
        } elseif (!$job->inputFollows) {
            $this->closeInput($job);
        } elseif (isset($this->inputs[$job->in])) {
            $this->unwatch($job->in);
            unset($this->inputs[$job->in]);
        }
    }

    public function listen(Job $job, bool $listen): void
    {
        foreach ([$job->out, $job->err] as $descriptor) {
            if ($descriptor >= 0) {
                $listen ? $this->watch($descriptor, self::EPOLLIN) : $this->unwatch($descriptor);
            }
        }
    }

    public function signal(int $pid, int $signal): void
    {
        $this->c->kill($pid, $signal);
    }

    public function isDeserted(): bool
    {
        // ECHILD is the only error: as a subreaper this process has every descendant below it.
        return $this->c->waitid(0, 0, $this->buffer, 1 | 4 | 0x01000000) < 0; // WNOHANG | WEXITED | WNOWAIT
    }

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

    /** Prepares what children get of signals, and blocks here those that are read from a descriptor instead. */
    private function takeSignals(): int
    {
        $c = $this->c;
        // A SIGCHLD ignored by whoever started us would have children reaped unseen.
        $c->signal(17, null);
        $set = $this->libc->new('signal_set[1]');
        $c->posix_spawnattr_init($this->attributes);
        $c->posix_spawnattr_setflags($this->attributes, 2 | 4 | 8); // SETPGROUP | SETSIGDEF | SETSIGMASK
        $c->posix_spawnattr_setpgroup($this->attributes, 0);
        $c->sigemptyset($set);
        $c->posix_spawnattr_setsigmask($this->attributes, $set);
        // Only what is ignored here needs it, and each signal in the set costs the child a system call.
        foreach (self::ignoredSignals() as $signal) {
            $c->sigaddset($set, $signal);
        }
        $c->posix_spawnattr_setsigdefault($this->attributes, $set);

        $c->sigemptyset($set);
        foreach ([17, 15, 2, 1] as $signal) { // CHLD, TERM, INT, HUP
            $c->sigaddset($set, $signal);
        }
        $c->sigprocmask(0, $set, null);

        return $c->signalfd(-1, $set, self::CLOEXEC | self::NONBLOCK);
    }

    /** @return list<int> */
    private static function ignoredSignals(): array
    {
        preg_match('/^SigIgn:\s*([0-9a-f]+)$/m', (string) @file_get_contents('/proc/self/status'), $match);
        $mask = (int) hexdec($match[1] ?? '0');

        return array_values(array_unique([13, ...array_filter(range(1, 62), static fn(int $signal): bool => ($mask >> ($signal - 1) & 1) === 1)]));
    }

    private function resolve(Job $job): string
    {
        $program = $job->arguments[0] ?? '/bin/sh';
        if (str_contains($program, '/')) {
            return $program;
        }
        $path = $this->pathOf($job);
        $key = "{$path}\0{$program}";

        return $this->found[$key] ??= Programs::find($program, $path);
    }

    private function pathOf(Job $job): string
    {
        foreach ($job->changes as $change) {
            if (str_starts_with($change, 'PATH=')) {
                return substr($change, 5);
            }
        }

        return substr($this->variables['PATH'] ?? 'PATH=' . Programs::DEFAULT_PATH, 5);
    }

    private function setEnvironment(Job $job): void
    {
        $marker = Protocol::MARKER . "={$this->token}.{$job->id}";
        $changes = implode("\0", $job->changes);
        // Consecutive commands mostly have the same changes, or none: then only the marker, the first entry, is new.
        if ($changes === $this->environmentOf) {
            $this->environment->replaceFirst($marker);

            return;
        }
        $variables = $this->variables;
        foreach ($job->changes as $change) {
            [$name, $value] = explode('=', $change, 2) + [1 => null];
            if ($value === null) {
                unset($variables[$name]);
            } else {
                $variables[$name] = $change;
            }
        }
        unset($variables[Protocol::MARKER]);
        $this->environment->fill([str_pad($marker, 96, "\0"), ...array_values($variables)]);
        $this->environment->replaceFirst($marker);
        $this->environmentOf = $changes;
    }

    /** Opens the pipes as pairs: ours go to $job->out, err and in, the child's to $job->childEnds. */
    private function openPipes(Job $job): bool
    {
        $flags = $job->flags;
        $piped = [
            ($flags & (Protocol::INPUT_INLINE | Protocol::INPUT_FOLLOWS)) !== 0,
            ($flags & (Protocol::INHERIT_STDOUT | Protocol::DISCARD_STDOUT)) === 0,
            ($flags & (Protocol::INHERIT_STDERR | Protocol::DISCARD_STDERR)) === 0,
        ];
        foreach ($piped as $descriptor => $isPiped) {
            if (!$isPiped) {
                continue;
            }
            if ($this->c->pipe2($this->pipe, self::CLOEXEC) !== 0) {
                return false;
            }
            $ends = [$this->pipe[0], $this->pipe[1]];
            $job->childEnds[$descriptor] = $ends[$descriptor === 0 ? 0 : 1];
            match ($descriptor) {
                0 => $job->in = $ends[1],
                1 => $job->out = $ends[0],
                2 => $job->err = $ends[0],
            };
        }

        return true;
    }

    /** What the child does with its descriptors; the numbers come again and again, so the lists are kept. */
    private function actions(Job $job): \FFI\CData
    {
        $sources = [
            $job->childEnds[0] ?? $this->null,
            $job->childEnds[1] ?? (($job->flags & Protocol::INHERIT_STDOUT) !== 0 ? self::STDOUT_OF_POOL : $this->null),
            $job->childEnds[2] ?? (($job->flags & Protocol::INHERIT_STDERR) !== 0 ? 2 : $this->null),
        ];
        $key = "{$sources[0]},{$sources[1]},{$sources[2]}";
        if (isset($this->actions[$key])) {
            return $this->actions[$key];
        }
        if (\count($this->actions) >= self::KEPT_ACTIONS) {
            array_walk($this->actions, $this->c->posix_spawn_file_actions_destroy(...));
            $this->actions = [];
        }
        $actions = $this->libc->new('spawn_actions[1]');
        $this->c->posix_spawn_file_actions_init($actions);
        foreach ($sources as $target => $source) {
            $this->c->posix_spawn_file_actions_adddup2($actions, $source, $target);
        }

        return $this->actions[$key] = $actions;
    }

    private function spawn(string $path, Job $job): int
    {
        Programs::enter($job->directory);

        return $this->c->posix_spawn(
            $this->pid,
            $path,
            $this->actions($job),
            $this->attributes,
            $this->arguments->pointers,
            $this->environment->pointers,
        );
    }

    private function openOurEnds(Job $job): void
    {
        $c = $this->c;
        foreach ($job->childEnds as $end) {
            $c->close($end);
        }
        $job->childEnds = [];
        if ($job->out >= 0) {
            $c->fcntl($job->out, 4, self::NONBLOCK);
            $this->outputs[$job->out] = $job;
        }
        if ($job->err >= 0) {
            $c->fcntl($job->err, 4, self::NONBLOCK);
            $this->errors[$job->err] = $job;
        }
        if (!$this->young->add($job)) {
            $this->listen($job, true);
        }
        if ($job->in >= 0) {
            $c->fcntl($job->in, 4, self::NONBLOCK | 1);
            $this->feed($job);
        }
    }

    private function closePipes(Job $job): void
    {
        foreach ([...$job->childEnds, $job->out, $job->err, $job->in] as $descriptor) {
            if ($descriptor >= 0) {
                $this->c->close($descriptor);
            }
        }
        $job->childEnds = [];
        $job->out = $job->err = $job->in = -1;
    }

    private function waitForPool(int $milliseconds): void
    {
        $descriptors = [0 => self::POLLIN, 1 => self::POLLOUT, $this->signals => self::POLLIN];
        if ($this->poolProcess >= 0) {
            $descriptors[$this->poolProcess] = self::POLLIN;
        }
        $set = '';
        foreach ($descriptors as $descriptor => $events) {
            $set .= pack('lss', $descriptor, $events, 0);
        }
        \FFI::memcpy($this->buffer, $set, \strlen($set));
        if ($this->c->poll($this->buffer, \count($descriptors), $milliseconds) <= 0) {
            return;
        }
        $answer = \FFI::string($this->buffer, \strlen($set));
        $ready = [];
        foreach (array_keys($descriptors) as $i => $descriptor) {
            if (\ord($answer[$i * 8 + 6]) !== 0) {
                $ready[$descriptor] = true;
            }
        }
        $this->handle($ready);
    }

    /** @param array<int, true> $ready descriptors that have something for us */
    private function handle(array $ready): void
    {
        if (isset($ready[0])) {
            $this->receive();
            unset($ready[0]);
        }
        if (isset($ready[$this->poolProcess])) {
            $this->supervisor->poolGone();
        }
        // Exits before output: an exit takes the rest of the output along, and most commands have both at once.
        if (isset($ready[$this->signals])) {
            $this->takeExits();
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
        $length = $this->c->read(0, $this->buffer, self::READ_SIZE);
        if ($length > 0) {
            $this->supervisor->received(\FFI::string($this->buffer, $length));
        } elseif ($length === 0 || ($this->libc->errno() !== Libc::EAGAIN && $this->libc->errno() !== Libc::EINTR)) {
            $this->supervisor->poolGone();
        }
    }

    private function takeExits(): void
    {
        $size = $this->c->read($this->signals, $this->buffer, 128 * 16);
        $received = $size > 0 ? \FFI::string($this->buffer, $size) : '';
        for ($i = 0; $i < $size; $i += 128) {
            if (\ord($received[$i]) !== 17) {
                $this->supervisor->poolGone(); // told to end by TERM, INT or HUP
            }
        }
        while (($pid = $this->c->waitpid(-1, $this->status, 1)) > 0) {
            $job = $this->jobs[$pid] ?? null;
            if ($job === null) {
                $this->supervisor->orphanEnded();

                continue;
            }
            $status = $this->status[0];
            unset($this->jobs[$pid]);
            $this->takeRest($job);
            $signal = $status & 0x7F;
            $this->supervisor->exited($job, $signal === 0 ? ($status >> 8) & 0xFF : -1, $signal);
        }
    }

    /** Takes what the process left in its pipes, and no more: a descendant may still be writing. */
    private function takeRest(Job $job): void
    {
        $rest = 0;
        if ($job->out >= 0) {
            $rest += $this->read($job->out, $job, false, true);
        }
        if ($job->err >= 0) {
            $rest += $this->read($job->err, $job, true, true);
        }
        $this->young->remove($job, $rest);
        if ($job->in >= 0) {
            $this->closeInput($job);
        }
    }

    /** @return int bytes */
    private function read(int $descriptor, Job $job, bool $isError, bool $last = false): int
    {
        $length = $this->c->read($descriptor, $this->buffer, self::READ_SIZE);
        if ($length > 0) {
            $this->supervisor->output($job, $isError, \FFI::string($this->buffer, $length));
        }
        if ($last || $length === 0) {
            unset($this->outputs[$descriptor], $this->errors[$descriptor]);
            $this->c->close($descriptor);
            if ($isError) {
                $job->err = -1;
            } else {
                $job->out = -1;
            }
        }

        return max(0, $length);
    }

    private function awaitInput(Job $job): void
    {
        if (!isset($this->inputs[$job->in])) {
            $this->inputs[$job->in] = $job;
            $this->watch($job->in, self::EPOLLOUT);
        }
    }

    private function closeInput(Job $job): void
    {
        unset($this->inputs[$job->in]);
        $this->c->close($job->in);
        $job->in = -1;
    }

    private function watch(int $descriptor, int $events): void
    {
        // EPOLL_CTL_ADD; the event's user data is the descriptor.
        $this->c->epoll_ctl($this->epoll, 1, $descriptor, $this->eventWords === 3
            ? pack('VVV', $events, $descriptor, 0)
            : pack('VVVV', $events, 0, $descriptor, 0));
    }

    private function unwatch(int $descriptor): void
    {
        $this->c->epoll_ctl($this->epoll, 2, $descriptor, str_repeat("\0", 16));
    }
}
