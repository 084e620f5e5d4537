<?php

declare(strict_types=1);

namespace Spindle\Command\Internal\Launcher;

use Spindle\Command\Internal\Protocol;

/**
 * The launcher's own logic, whatever starts the processes: which job is next, when one is over its time, how its tree is
 * ended, what the pool is told. It ends when the pool does, and everything that it started ends before it.
 */
final class Supervisor
{
    /** Frames may pile up to this size, in bytes, before jobs are neither started nor heard. */
    private const BACKLOG = 4 << 20;

    /**
     * While other jobs wait for a slot, frames may wait this long for company, in nanoseconds: the pool then wakes
     * once for several results.
     */
    private const GATHER = 2_000_000;

    /** Captured output leaves in pieces of at least this size, in bytes. */
    private const PIECE = 1 << 16;

    /** Of the grace that jobs get to end, at most this remains, in seconds, when the pool itself is gone. */
    private const LAST_GRACE = 0.5;

    /** A killed process is gone within this time, in nanoseconds, or it can't be killed. */
    private const KILLED_WITHIN = 1_000_000_000;

    /** Between two looks at what is left of an ended job: at first and at most, in nanoseconds. */
    private const FIRST_LOOK = 1_000_000;
    private const LAST_LOOK = 50_000_000;

    private readonly Backend $backend;
    private int $concurrency = 0;
    private float $grace = 2.0;
    private readonly WaitingJobs $waiting;
    private readonly Trees $trees;

    /** @var array<int, Job> started and not yet reported, by id */
    private array $running = [];

    /** @var array<int, Job> of the running ones: to be ended for the pool */
    private array $cancelled = [];

    /** @var array<int, Job> of the running ones: ended, their own process gone */
    private array $lingering = [];

    /** No time limit is reached before this, on the monotonic clock; 0 when none is known. */
    private int $deadline = 0;
    private int $lookAt = 0;
    private int $look = self::FIRST_LOOK;

    /** When frames were last sent; and when those that are gathered are to be, or 0. */
    private int $flushed = 0;
    private int $flushAt = 0;

    private string $received = '';
    private string $backlog = '';
    private bool $exhausted = false;
    private bool $poolGone = false;

    /** @param \Closure(self): Backend $backend */
    public function __construct(\Closure $backend, string $token)
    {
        $this->waiting = new WaitingJobs();
        $this->backend = $backend($this);
        $this->trees = new Trees($this->backend, $token, $this->roots(...));
    }

    /** Works until the pool is gone, then ends what is left. */
    public function run(): void
    {
        $this->tell(Protocol::READY, 0, pack('VV', getmypid(), min($this->backend->capacity(), 0xFFFFFFFF)) . $this->backend->name());
        while (!$this->poolGone) {
            $this->flushInTime();
            $starting = $this->startNext();
            $this->backend->wait($starting ? 1 : $this->nextDeadline(), \strlen($this->backlog) > self::BACKLOG);
            $this->enforceLimits();
        }
        $this->trees->endAll(min($this->grace, self::LAST_GRACE), self::KILLED_WITHIN);
    }

    public function received(string $bytes): void
    {
        $bytes = $this->received . $bytes;
        $at = 0;
        $size = \strlen($bytes);
        while ($size - $at >= Protocol::HEADER) {
            /** @var array{length: int, type: int, job: int} $header */
            $header = unpack('Vlength/Ctype/Vjob', $bytes, $at);
            if ($size - $at - 4 < $header['length']) {
                break;
            }
            $this->obey($header['type'], $header['job'], substr($bytes, $at + Protocol::HEADER, $header['length'] - 5));
            $at += 4 + $header['length'];
        }
        $this->received = $at === $size ? '' : substr($bytes, $at);
    }

    public function poolGone(): void
    {
        $this->poolGone = true;
    }

    public function output(Job $job, bool $isError, string $bytes): void
    {
        if ($job->idleTimeout > 0) {
            $job->lastOutput = hrtime(true);
        }
        if (($job->flags & ($isError ? Protocol::STREAM_STDERR : Protocol::STREAM_STDOUT)) !== 0) {
            $this->tell($isError ? Protocol::STDERR : Protocol::STDOUT, $job->id, $bytes);
            $before = $job->untaken;
            $job->untaken += \strlen($bytes);
            if ($job->untaken > Protocol::OUTPUT_WINDOW && $before <= Protocol::OUTPUT_WINDOW) {
                $this->backend->listen($job, false);
            }
        } elseif ($isError) {
            $job->stderr .= $bytes;
            if (\strlen($job->stderr) >= self::PIECE) {
                $this->tell(Protocol::STDERR, $job->id, $job->stderr);
                $job->stderr = '';
            }
        } else {
            $job->stdout .= $bytes;
            if (\strlen($job->stdout) >= self::PIECE) {
                $this->tell(Protocol::STDOUT, $job->id, $job->stdout);
                $job->stdout = '';
            }
        }
    }

    public function inputTaken(Job $job, int $bytes): void
    {
        if (($job->flags & Protocol::INPUT_FOLLOWS) !== 0) {
            $this->tell(Protocol::INPUT_TAKEN, $job->id, pack('V', $bytes));
        }
    }

    /** The job has closed its standard input, or ended: what follows is not wanted. */
    public function inputRefused(Job $job): void
    {
        $job->inputFollows = false;
        $this->inputTaken($job, 0xFFFFFFFF);
    }

    /** The job's own process is over; -1 and a signal, or an exit code and 0. Its output has been reported. */
    public function exited(Job $job, int $exitCode, int $signal): void
    {
        $job->pid = 0;
        $job->exitCode = $exitCode;
        $job->signal = $signal;
        $job->ended = hrtime(true);
        $this->exhausted = false;
        if ($job->ending === 0) {
            $this->report($job);
        } else {
            $this->lingering[$job->id] = $job;
            $this->lookAt = 1;
        }
    }

    /** A descendant of some job, adopted by this process, is over. */
    public function orphanEnded(): void
    {
        if ($this->lingering !== []) {
            $this->lookAt = 1;
        }
        $this->exhausted = false;
    }

    private function obey(int $type, int $id, string $payload): void
    {
        match ($type) {
            Protocol::RUN => $this->enqueue($id, $payload),
            Protocol::INPUT => $this->input($id, $payload, true),
            Protocol::INPUT_END => $this->input($id, '', false),
            Protocol::OUTPUT_TAKEN => $this->outputTaken($id, $payload),
            Protocol::CANCEL => $this->cancel($id),
            Protocol::WITHDRAW => $this->withdraw($id),
            Protocol::CONFIGURE => $this->configure($payload),
            Protocol::ENVIRONMENT => $this->backend->useEnvironment($payload === '' ? [] : explode("\0", $payload)),
            default => throw new \UnexpectedValueException("The pool sent a frame of the unknown type {$type}"),
        };
    }

    private function enqueue(int $id, string $payload): void
    {
        /** @var array{lane: int, flags: int, timeout: float, idle: float, changes: int, strings: int} $head */
        $head = unpack('Vlane/vflags/etimeout/eidle/Vchanges/Vstrings', $payload);
        $strings = explode("\0", substr($payload, 30, $head['strings']));
        $this->waiting->add(new Job(
            $id,
            $head['lane'],
            $head['flags'],
            $head['timeout'],
            $head['idle'],
            $strings[0],
            $head['changes'] === 0 ? [] : \array_slice($strings, 2, $head['changes']),
            \array_slice($strings, 2 + $head['changes']),
            $strings[1],
            substr($payload, 30 + $head['strings']),
        ));
    }

    private function configure(string $payload): void
    {
        /** @var array{concurrency: int, largest: int, grace: float} $settings */
        $settings = unpack('Vconcurrency/Vlargest/egrace', $payload);
        $capacity = $this->backend->capacity();
        if ($settings['largest'] > $capacity) {
            $this->tell(Protocol::REFUSED, 0, pack('V', $capacity) . $this->backend->name());
            $this->waiting->clear();
        }
        $this->concurrency = $settings['largest'] > $capacity ? 0 : $settings['concurrency'];
        $this->grace = $settings['grace'];
    }

    private function input(int $id, string $bytes, bool $follows): void
    {
        $job = $this->running[$id] ?? $this->waiting->find($id);
        if ($job === null || !$job->inputFollows) {
            return;
        }
        $job->input .= $bytes;
        $job->inputFollows = $follows;
        $this->backend->feed($job);
    }

    private function outputTaken(int $id, string $payload): void
    {
        $job = $this->running[$id] ?? null;
        if ($job === null) {
            return;
        }
        $before = $job->untaken;
        /** @var array{bytes: int} $taken */
        $taken = unpack('Vbytes', $payload);
        $job->untaken -= $taken['bytes'];
        if ($before > Protocol::OUTPUT_WINDOW && $job->untaken <= Protocol::OUTPUT_WINDOW) {
            $this->backend->listen($job, true);
        }
    }

    private function cancel(int $id): void
    {
        $this->withdraw($id);
        if (isset($this->running[$id]) && $this->running[$id]->ending === 0) {
            $this->cancelled[$id] = $this->running[$id];
        }
    }

    private function withdraw(int $id): void
    {
        if ($this->waiting->remove($id)) {
            $this->tell(Protocol::NOT_STARTED, $id, pack('CC', Protocol::CANCELLED, 0));
        }
    }

    /** @return bool whether the next one may start at once */
    private function startNext(): bool
    {
        if (!$this->mayStart()) {
            return false;
        }
        $job = $this->waiting->next();
        $id = $job->id;
        $job->startedAt = microtime(true);
        $job->started = $job->lastOutput = hrtime(true);
        try {
            if (!$this->startOrFallBack($job)) {
                if ($this->running === []) {
                    throw new StartFailure(126, 'No more descriptors or processes are allowed (see ulimit -n, ulimit -u, the pids cgroup)', Protocol::EXHAUSTED);
                }
                $this->exhausted = true;
                $this->waiting->putBack($job);

                return false;
            }
        } catch (StartFailure $failure) {
            $this->tell(Protocol::NOT_STARTED, $id, pack('CC', $failure->why, $failure->exitCode) . $failure->getMessage());

            return true; // so that it is told without waiting for something else to happen
        }
        $this->running[$id] = $job;
        if ($job->timeout > 0) {
            $this->expect($job->started + self::nanoseconds($job->timeout));
        }
        if ($job->idleTimeout > 0) {
            $this->expect($job->started + self::nanoseconds($job->idleTimeout));
        }

        return $this->mayStart();
    }

    private function mayStart(): bool
    {
        return !$this->waiting->isEmpty() && \count($this->running) < $this->concurrency
            && !$this->exhausted && \strlen($this->backlog) <= self::BACKLOG;
    }

    /** A shell line that was split but can't be started goes to the shell, which has its own words for the reason. */
    private function startOrFallBack(Job $job): bool
    {
        try {
            return $this->backend->start($job);
        } catch (StartFailure $failure) {
            if ($job->line === '' || $job->arguments === []) {
                throw $failure;
            }
            $job->arguments = [];

            return $this->backend->start($job);
        }
    }

    /** At most thirty years, so that a sum with the clock never overflows. */
    private static function nanoseconds(float $seconds): int
    {
        return (int) (min($seconds, 1e9) * 1e9);
    }

    private function expect(int $deadline): void
    {
        if ($this->deadline === 0 || $deadline < $this->deadline) {
            $this->deadline = $deadline;
        }
    }

    private function nextDeadline(): int
    {
        $next = $this->deadline;
        foreach ([$this->lookAt, $this->flushAt] as $other) {
            $next = $next === 0 || ($other !== 0 && $other < $next) ? $other : $next;
        }

        return $next;
    }

    private function enforceLimits(): void
    {
        if ($this->cancelled !== []) {
            // Together, for each look at the processes of the machine takes milliseconds.
            $this->end(array_values(array_intersect_key($this->cancelled, $this->running)), Protocol::CANCELLED);
            $this->cancelled = [];
        }
        if ($this->deadline === 0 && $this->lookAt === 0) {
            return;
        }
        $now = hrtime(true);
        if ($this->deadline !== 0 && $this->deadline <= $now) {
            $this->endOverdue($now);
        }
        if ($this->lookAt !== 0 && $this->lookAt <= $now) {
            $this->lookForSurvivors($now);
        }
    }

    private function endOverdue(int $now): void
    {
        // The deadline was the earliest of all; the next one is found on the way, and is too early at worst.
        $this->deadline = 0;
        $timedOut = $idle = $kill = [];
        foreach ($this->running as $job) {
            if ($job->ending !== 0) {
                if ($job->killAt > $now) {
                    $this->expect($job->killAt);
                } elseif ($job->killed) {
                    $this->abandon($job);
                } else {
                    $job->killed = true;
                    $kill[$job->id] = true;
                    $job->killAt = $now + self::KILLED_WITHIN;
                    $this->expect($job->killAt);
                }

                continue;
            }
            if ($job->untaken > Protocol::OUTPUT_WINDOW || \strlen($this->backlog) > self::BACKLOG) {
                $job->lastOutput = $now; // it is not silent, it is not listened to
            }
            $timeout = $job->timeout > 0 ? $job->started + self::nanoseconds($job->timeout) : \PHP_INT_MAX;
            $silence = $job->idleTimeout > 0 ? $job->lastOutput + self::nanoseconds($job->idleTimeout) : \PHP_INT_MAX;
            if ($timeout <= $now) {
                $timedOut[] = $job;
            } elseif ($silence <= $now) {
                $idle[] = $job;
            } elseif (min($timeout, $silence) !== \PHP_INT_MAX) {
                $this->expect(min($timeout, $silence));
            }
        }
        $this->end($timedOut, Protocol::TIMED_OUT);
        $this->end($idle, Protocol::IDLE);
        $this->trees->kill($kill);
    }

    /** @param list<Job> $jobs */
    private function end(array $jobs, int $reason): void
    {
        if ($jobs === []) {
            return;
        }
        $ids = [];
        foreach ($jobs as $job) {
            $job->ending = $reason;
            $job->killAt = hrtime(true) + self::nanoseconds($this->grace);
            $this->expect($job->killAt);
            $ids[$job->id] = true;
        }
        $this->trees->terminate($ids);
    }

    private function lookForSurvivors(int $now): void
    {
        $alive = array_flip($this->trees->alive());
        $left = false;
        foreach ($this->lingering as $id => $job) {
            if (isset($alive[$id])) {
                $left = true;
            } else {
                unset($this->lingering[$id]);
                $this->report($job);
            }
        }
        // Adopted orphans announce their end; where there is no adoption, the looks get rarer.
        $this->look = $left ? min($this->look * 2, self::LAST_LOOK) : self::FIRST_LOOK;
        $this->lookAt = $left ? $now + $this->look : 0;
    }

    /** What neither ends nor can be ended keeps no slot and nobody waiting. */
    private function abandon(Job $job): void
    {
        $job->ending |= Protocol::SURVIVED;
        if (isset($this->lingering[$job->id])) {
            unset($this->lingering[$job->id]);
        } else {
            $this->backend->abandon($job);
            $job->ended = hrtime(true);
        }
        $this->report($job);
    }

    private function report(Job $job): void
    {
        unset($this->running[$job->id]);
        $this->tell(Protocol::EXITED, $job->id, pack(
            'CllddV',
            $job->ending,
            $job->exitCode,
            $job->signal,
            $job->startedAt,
            ($job->ended - $job->started) / 1e9,
            \strlen($job->stdout),
        ) . $job->stdout . $job->stderr);
    }

    private function tell(int $type, int $job, string $payload): void
    {
        $this->backlog .= Protocol::frame($type, $job, $payload);
    }

    private function flushInTime(): void
    {
        if ($this->backlog === '') {
            return;
        }
        $now = hrtime(true);
        if (!$this->waiting->isEmpty() && $now - $this->flushed < self::GATHER && \strlen($this->backlog) < self::PIECE) {
            $this->flushAt = $this->flushed + self::GATHER;

            return;
        }
        $this->flushed = $now;
        $this->flushAt = 0;
        $this->backlog = $this->backend->send($this->backlog);
    }

    /** @return array<int, int> job by the pid of its own process, of those that are not gone yet */
    private function roots(): array
    {
        $roots = [];
        foreach ($this->running as $job) {
            if (!isset($this->lingering[$job->id])) {
                $roots[$this->backend->pidOf($job)] = $job->id;
            }
        }

        return $roots;
    }
}
