<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

use Spindle\Internal\FrameHandler;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\LauncherProtocol;

/**
 * The main loop of a launcher: receives commands as jobs, starts them when slots are free, and reports their ends.
 * When the pool has ended, the scheduler ends all processes of its jobs ({@see JobTermination}), and its loop returns.
 */
final class JobScheduler implements FrameHandler
{
    /** Captured output is sent at this number of bytes. Less output is sent when the job ends, or on SEND_OUTPUT. */
    private const PIECE_BYTES = 1 << 16;

    /** Time limits after all processes have ended: first for reading exits and output, then for sending last frames. */
    private const LAST_OUTPUT_NANOSECONDS = 20_000_000;
    private const LAST_FRAMES_NANOSECONDS = 500_000_000;

    /** Time until the next try after a start failed for lack of descriptors or processes, if no process ends before. */
    private const EXHAUSTED_PAUSE_NANOSECONDS = 50_000_000;

    private const RUN_HEAD_BYTES = 32;

    private readonly Backend $backend;
    private int $concurrency = 0;
    /** @var WaitingJobs<LauncherJob> */
    private readonly WaitingJobs $waiting;
    private readonly JobTermination $termination;
    private readonly FrameReader $received;
    private readonly OutgoingFrames $frames;

    /** @var array<int, LauncherJob> jobs that were started and whose end was not reported, by id */
    private array $running = [];

    /** @var list<string> environment of the jobs that are received next */
    private array $environment = [];

    /** @var list<string>|null environment that the backend uses now; null before the first job */
    private ?array $appliedEnvironment = null;

    /** Time of the next try after a start failed for lack of descriptors or processes, in ns; 0 without such a lack. */
    private int $exhaustedUntil = 0;

    /** When a frame STARTED reports each job: BEFORE_START, AFTER_START, both (their sum) or neither (0). */
    private int $announcedStarts = 0;

    /** The launcher reads no output of a job while more streamed bytes than this await the pool's acknowledgement. */
    private int $outputWindow = LauncherProtocol::OUTPUT_WINDOW;
    private bool $poolEnded = false;

    /** @param \Closure(self): Backend $backend */
    public function __construct(\Closure $backend, string $token)
    {
        $this->waiting = new WaitingJobs();
        $this->backend = $backend($this);
        $this->termination = new JobTermination($this->backend, new JobTrees($this->backend, $token));
        $this->received = new FrameReader();
        $this->frames = new OutgoingFrames($this->backend, $this->waiting);
    }

    public function run(): void
    {
        $this->frames->add(
            LauncherProtocol::READY,
            0,
            pack('VV', getmypid(), min($this->backend->maxConcurrency(), 0xFFFFFFFF)) . $this->backend->name(),
        );
        while (!$this->poolEnded) {
            $this->frames->sendIfDue();
            $starting = $this->startNext();
            $this->frames->sendIfDue(); // startNext() may have added frames
            $this->backend->wait($starting ? 1 : $this->nextDeadline(), $this->frames->areFull);
            foreach ($this->termination->enforceLimits($this->running, $this->frames->areFull) as $job) {
                $this->reportEnd($job);
            }
        }
        $this->termination->endAll();
        $this->sendRest();
    }

    public function received(string $bytes): void
    {
        $this->received->feed($bytes, $this);
    }

    public function onFrame(int $type, int $id, string $bytes, int $at, int $length): void
    {
        $payload = substr($bytes, $at, $length);
        match ($type) {
            LauncherProtocol::RUN => $this->enqueue($id, $payload),
            LauncherProtocol::INPUT => $this->input($id, $payload, true),
            LauncherProtocol::INPUT_END => $this->input($id, '', false),
            LauncherProtocol::OUTPUT_TAKEN => $this->outputTaken($id, $payload),
            LauncherProtocol::CANCEL => $this->cancel($id, $payload),
            LauncherProtocol::WITHDRAW => $this->withdraw($id, 0),
            LauncherProtocol::SEND_OUTPUT => $this->sendOutput($id),
            LauncherProtocol::END => $this->poolEnded(),
            LauncherProtocol::PING => $this->frames->add(LauncherProtocol::ALIVE, 0, ''),
            LauncherProtocol::CONFIGURE => $this->configure($payload),
            LauncherProtocol::ENVIRONMENT => $this->environment = $payload === '' ? [] : explode("\0", $payload),
            default => throw new \UnexpectedValueException("The pool sent a frame of the unknown type {$type}"),
        };
    }

    /** Makes {@see run()} end all processes and return. */
    public function poolEnded(): void
    {
        $this->poolEnded = true;
    }

    /** Queues streamed output for the pool. Keeps captured output until PIECE_BYTES are reached, or the job ends. */
    public function output(LauncherJob $job, bool $isError, string $bytes): void
    {
        if ($job->idleTimeout > 0) {
            $job->lastOutputAt = hrtime(true);
        }
        $type = $isError ? LauncherProtocol::STDERR : LauncherProtocol::STDOUT;
        if (($job->flags & ($isError ? LauncherProtocol::STREAM_STDERR : LauncherProtocol::STREAM_STDOUT)) !== 0) {
            $this->frames->add($type, $job->id, $bytes);
            $job->unacknowledged += \strlen($bytes);
            if ($job->unacknowledged > $this->outputWindow && !$job->isOutputPaused) {
                $job->isOutputPaused = true;
                $this->backend->listen($job, false);
            }

            return;
        }
        $kept = $isError ? $job->stderr .= $bytes : $job->stdout .= $bytes;
        if (\strlen($kept) >= self::PIECE_BYTES) {
            $this->sendKept($job, $type, $kept);
        }
    }

    /** Reports how many bytes of input the job's pipe has accepted, so that the pool sends more. */
    public function inputAccepted(LauncherJob $job, int $bytes): void
    {
        if (($job->flags & LauncherProtocol::INPUT_FOLLOWS) !== 0) {
            $this->frames->add(LauncherProtocol::INPUT_ACCEPTED, $job->id, pack('V', $bytes));
        }
    }

    /** Reports that the job needs no more input, because it has closed its standard input or has ended. */
    public function inputRefused(LauncherJob $job): void
    {
        $job->inputFollows = false;
        $this->inputAccepted($job, 0xFFFFFFFF);
    }

    /**
     * Handles the exit of a job's process. The backend must have reported all output of the job before. The exit code
     * is -1 after a signal, and the signal is 0 without one.
     */
    public function exited(LauncherJob $job, int $exitCode, int $signal): void
    {
        $job->pid = 0;
        $job->exitCode = $exitCode;
        $job->signal = $signal;
        $job->endedAt = hrtime(true);
        $this->exhaustedUntil = 0;
        $job->endReason === 0 ? $this->reportEnd($job) : $this->termination->linger($job);
    }

    /** Handles the end of an orphan: a process that the launcher has adopted, because its parent had exited. */
    public function orphanEnded(): void
    {
        $this->termination->orphanEnded();
        $this->exhaustedUntil = 0;
    }

    private function sendKept(LauncherJob $job, int $type, string $kept): void
    {
        $this->frames->add($type, $job->id, $kept);
        $type === LauncherProtocol::STDERR ? $job->stderr = '' : $job->stdout = '';
    }

    private function sendOutput(int $id): void
    {
        $job = $this->running[$id] ?? null;
        if ($job !== null && $job->stdout !== '') {
            $this->sendKept($job, LauncherProtocol::STDOUT, $job->stdout);
        }
        if ($job !== null && $job->stderr !== '') {
            $this->sendKept($job, LauncherProtocol::STDERR, $job->stderr);
        }
    }

    private function enqueue(int $id, string $payload): void
    {
        /**
         * @var array{lane: int, flags: int, timeout: float, idle: float, changes: int, strings: int, umask: int} $head
         */
        $head = unpack('Vlane/vflags/etimeout/eidle/Vchanges/Vstrings/vumask', $payload);
        $first = 2 + $head['changes'];
        $strings = explode("\0", substr($payload, self::RUN_HEAD_BYTES, $head['strings']), $first + 1);
        $job = new LauncherJob(
            $id,
            $head['lane'],
            $head['flags'],
            $head['timeout'],
            $head['idle'],
            $strings[0],
            $head['changes'] === 0 ? [] : \array_slice($strings, 2, $head['changes']),
            $strings[$first] ?? '',
            $strings[1],
            substr($payload, self::RUN_HEAD_BYTES + $head['strings']),
            $head['umask'],
        );
        $job->inherited = $this->environment;
        $this->waiting->add($job);
    }

    private function configure(string $payload): void
    {
        /** @var array{concurrency: int, largest: int, gracePeriod: float, announce: int, window: int} $settings */
        $settings = unpack('Vconcurrency/Vlargest/egracePeriod/Cannounce/Vwindow', $payload);
        $maxConcurrency = $this->backend->maxConcurrency();
        if ($settings['largest'] > $maxConcurrency) {
            $this->frames->add(LauncherProtocol::REFUSED, 0, pack('V', $maxConcurrency) . $this->backend->name());
            $this->waiting->clear();
        }
        $this->concurrency = $settings['largest'] > $maxConcurrency ? 0 : $settings['concurrency'];
        $this->termination->gracePeriod = $settings['gracePeriod'];
        $this->announcedStarts = $settings['announce'];
        $this->outputWindow = $settings['window'];
        foreach ([...array_keys($this->running), 0] as $id) {
            $this->frames->add(LauncherProtocol::STARTED, $id, '');
        }
        $this->frames->send();
    }

    private function input(int $id, string $bytes, bool $follows): void
    {
        $job = $this->running[$id] ?? null;
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
        /** @var array{bytes: int} $taken */
        $taken = unpack('Vbytes', $payload);
        // The difference is negative if the pool acknowledges bytes that another launcher sent in an earlier attempt.
        $job->unacknowledged = max(0, $job->unacknowledged - $taken['bytes']);
        if ($job->isOutputPaused && $job->unacknowledged <= $this->outputWindow) {
            $job->isOutputPaused = false;
            $job->lastOutputAt = hrtime(true); // until now, output of the job was not read
            $this->backend->listen($job, true);
        }
    }

    private function cancel(int $id, string $payload): void
    {
        if (isset($this->running[$id])) {
            $this->termination->cancel($this->running[$id]);
        } elseif ($payload === '' || $this->waiting->isAmongNext($id, $this->concurrency - \count($this->running))) {
            $this->withdraw($id, LauncherProtocol::CANCELLED);
        } else {
            $this->frames->add(LauncherProtocol::WAITING, $id, '');
        }
    }

    private function withdraw(int $id, int $reason): void
    {
        if ($this->waiting->remove($id)) {
            $this->frames->add(LauncherProtocol::NOT_STARTED, $id, pack('CC', $reason, 0));
        } elseif (isset($this->running[$id])) {
            $this->frames->add(LauncherProtocol::STARTED, $id, '');
        }
    }

    /** @return bool whether another job may be started immediately */
    private function startNext(): bool
    {
        if (!$this->mayStart()) {
            return false;
        }
        $oldest = $this->waiting->oldest();
        $job = $this->waiting->next();
        $id = $job->id;
        $job->overtakesOthers = $id !== $oldest;
        $job->unixStart = microtime(true);
        $job->startedAt = $job->lastOutputAt = hrtime(true);
        if (($this->announcedStarts & LauncherProtocol::BEFORE_START) !== 0) {
            $this->frames->add(LauncherProtocol::STARTED, $id, LauncherProtocol::IS_STARTING);
            $this->frames->send();
        }
        if ($job->inherited !== $this->appliedEnvironment) {
            $this->appliedEnvironment = $job->inherited;
            $this->backend->useEnvironment($job->inherited);
        }
        try {
            if (!$this->startOrFallBack($job)) {
                if ($this->running === []) {
                    throw StartFailure::exhausted();
                }
                $this->exhaustedUntil = hrtime(true) + self::EXHAUSTED_PAUSE_NANOSECONDS;
                $this->waiting->putBack($job, !$job->overtakesOthers);

                return false;
            }
        } catch (StartFailure $failure) {
            $this->frames->add(
                LauncherProtocol::NOT_STARTED,
                $id,
                pack('CC', $failure->why, $failure->exitCode) . $failure->getMessage(),
            );

            return $this->mayStart();
        }
        $this->exhaustedUntil = 0;
        $job->arguments = ''; // no longer needed, and may be megabytes
        $this->running[$id] = $job;
        $this->termination->started($job);
        if ($job->overtakesOthers || ($this->announcedStarts & LauncherProtocol::AFTER_START) !== 0) {
            $this->frames->add(LauncherProtocol::STARTED, $id, '');
        }
        $this->inputAccepted($job, 0); // requests the first bytes of the input

        return $this->mayStart();
    }

    private function mayStart(): bool
    {
        return $this->hasNextJob() && ($this->exhaustedUntil === 0 || $this->exhaustedUntil <= hrtime(true));
    }

    private function hasNextJob(): bool
    {
        return !$this->waiting->isEmpty() && \count($this->running) < $this->concurrency && !$this->frames->areFull;
    }

    /**
     * Starts a job. If a shell line was split into words, and the program can't be started, a shell runs the line.
     *
     * @return bool false when no descriptors or processes are available now
     *
     * @throws StartFailure
     */
    private function startOrFallBack(LauncherJob $job): bool
    {
        if (($job->flags & LauncherProtocol::TOO_LARGE) !== 0) {
            throw new StartFailure(
                126,
                'Argument list too long: arguments and environment have more than 8 MiB, but the system allows at most'
                    . ' 6 MiB. Pass large values on standard input or in a file',
            );
        }
        try {
            return $this->backend->start($job);
        } catch (StartFailure $failure) {
            if ($job->line === '' || $job->arguments === '') {
                throw $failure;
            }
            $job->arguments = '';

            return $this->backend->start($job);
        }
    }

    /** Returns when a job reaches a limit, frames are due, or a start is tried again, in ns; 0 for never. */
    private function nextDeadline(): int
    {
        $next = self::earlier($this->termination->nextDeadline(), $this->frames->dueAt);

        return $this->exhaustedUntil !== 0 && $this->hasNextJob() ? self::earlier($next, $this->exhaustedUntil) : $next;
    }

    /** Returns the earlier of two times, of which 0 means never. */
    private static function earlier(int $one, int $other): int
    {
        return $one === 0 || ($other !== 0 && $other < $one) ? $other : $one;
    }

    private function reportEnd(LauncherJob $job): void
    {
        unset($this->running[$job->id]);
        $this->exhaustedUntil = 0; // descendants of the job may have ended unnoticed, so a start may succeed now
        $this->frames->add(LauncherProtocol::EXITED, $job->id, $job->end());
    }

    /** Reads the rest of the output, then sends the last frames, in case the pool still reads them. */
    private function sendRest(): void
    {
        $deadline = hrtime(true) + self::LAST_OUTPUT_NANOSECONDS;
        while ($this->running !== [] && hrtime(true) < $deadline) {
            $this->backend->awaitExit(1_000_000); // reads the rest of the output of each process
        }
        $deadline = hrtime(true) + self::LAST_FRAMES_NANOSECONDS;
        while (!$this->frames->isEmpty() && hrtime(true) < $deadline) {
            $this->frames->send();
            if (!$this->frames->isEmpty()) {
                $this->backend->wait(hrtime(true) + self::LAST_OUTPUT_NANOSECONDS, true);
            }
        }
    }
}
