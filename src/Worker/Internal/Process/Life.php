<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Spindle\Worker\Internal\Mark;
use Spindle\Worker\Internal\Protocol;

/**
 * A worker's way from its start to its end, and what the pool is told on it beside results: what tasks print, what they
 * report, and how it ends.
 *
 * Nothing ends a worker in the middle of a frame, nor in a fork that a task has made: that one is no worker, and says nothing.
 */
final class Life
{
    public const IDLE = 0;
    public const BUSY = 1;
    public const TASK = 2;

    private const KILL = 9;
    private const TERM = 15;

    private const FATAL = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR;

    /** Whose code runs: while it is BUSY, the worker's own, a signal waits until {@see enter()}. */
    public int $state = self::IDLE;

    /** Of the task that runs, once that has asked for it. */
    public ?DeferredCancellation $cancellation = null;

    private readonly int $pid;

    /** Whether it has made shared memory under the key, or is about to. */
    private bool $hasMark = false;
    private bool $terminating = false;

    /** It was told to end, and its task has asked to end by itself. */
    private bool $leaving = false;

    /** It has ended as it should. */
    private bool $over = false;

    /** @var string|null given back to PHP when it has no memory left and there is something to tell */
    private ?string $reserve; // @phpstan-ignore property.onlyWritten

    /**
     * @param int  $markKey for the shared memory, see {@see Mark}; 0 for none
     * @param bool $isThread where signals are the process's, and a shutdown function runs when it is too late
     */
    public function __construct(
        private readonly Wire $wire,
        private readonly ResultBuffer $results,
        private readonly int $markKey,
        private readonly bool $isThread,
    ) {
        $this->pid = (int) getmypid();
        $this->reserve = str_repeat('x', 1 << 16);
    }

    /**
     * From here on what is printed goes to the pool, and the pool is told how this process ends.
     *
     * @return \Shmop|null the mark, whose name is taken away however this ends
     */
    public function begin(): ?\Shmop
    {
        $this->captureOutput();
        if (!$this->isThread) {
            register_shutdown_function($this->lastWords(...));
            if (\function_exists('pcntl_signal')) {
                pcntl_async_signals(true);
                pcntl_signal(self::TERM, $this->terminate(...), false); // or it would be answered only when something comes
            }
        }
        $this->hasMark = $this->markKey !== 0; // before it is made: SIGTERM may come at any moment
        $mark = Mark::make($this->markKey);
        $this->hasMark = $mark !== null;

        return $mark;
    }

    /**
     * Waits for a frame, and may be told to end while it does.
     *
     * @return array{int, int, string}|null
     */
    public function receive(): ?array
    {
        $this->enter(self::IDLE);
        $frame = $this->wire->receive();
        $this->state = self::BUSY;

        return $frame;
    }

    /** Leaves the worker's own code; a signal that came in it is answered now. */
    public function enter(int $state): void
    {
        $this->state = $state;
        if ($this->terminating) {
            $this->terminate();
        }
    }

    /** Sends the results that wait. Whatever ends this process, it does between two frames. */
    public function flush(int $flags): void
    {
        $this->vanishInFork();
        $state = $this->state;
        $this->state = self::BUSY;
        $this->results->send($flags) || $this->vanish();
        $this->enter($state);
    }

    /** Sends something of a task's while it runs. */
    public function tell(int $type, string $bytes): void
    {
        if (getmypid() === $this->pid) {
            $state = $this->state;
            $this->state = self::BUSY;
            $this->wire->send($type, $this->results->batch, '', $bytes);
            $this->enter($state);
        }
    }

    public function cancellation(): Cancellation
    {
        return ($this->cancellation ??= new DeferredCancellation())->getCancellation();
    }

    /** A task that had asked for its cancellation has ended. */
    public function leaveIfTold(): void
    {
        $this->cancellation = null;
        if ($this->leaving) {
            $this->flush(0);
            $this->vanish();
        }
    }

    /** A fork that a task has made and that has come back from it ends here; and buffers that were left open, or closed. */
    public function tidy(): void
    {
        $this->vanishInFork();
        if (ob_get_level() !== 1) {
            while (ob_get_level() > 1 && @ob_end_flush()); // one that can not be removed stays
            if (ob_get_level() === 0) {
                $this->captureOutput();
            }
        }
    }

    public function vanishInFork(): void
    {
        if (getmypid() !== $this->pid) {
            $this->vanish();
        }
    }

    /** Ends, by this signal if it may, without anything more of the task being run, be it a destructor or a shutdown function. */
    public function vanish(int $signal = self::KILL): never
    {
        $this->removeMark();
        if (\function_exists('posix_kill') && !($this->isThread && getmypid() === $this->pid)) {
            foreach ([$signal, self::KILL] as $each) { // a task may have blocked the first
                posix_kill((int) getmypid(), $each);
            }
        }
        $this->over = true;
        exit(255);
    }

    /** It ends as it should: there are no last words. */
    public function conclude(): void
    {
        $this->over = true;
    }

    /** How this process, or thread, has ended; nothing if it was as it should. */
    public function lastWords(): void
    {
        if ($this->over) {
            $this->removeMark();

            return;
        }
        if (getmypid() !== $this->pid) {
            $this->over = true; // a fork that a task has made, and that has called exit()

            return;
        }
        $this->state = self::BUSY;
        $this->reserve = null;
        $peak = memory_get_peak_usage(true);
        $this->flush(0);
        $error = error_get_last();
        $fatal = $error !== null && ($error['type'] & self::FATAL) !== 0;
        $this->wire->send(
            Protocol::LAST_WORDS,
            $this->results->batch,
            pack('PC', $peak, $fatal ? 1 : 0),
            $fatal ? substr($error['message'], 0, Protocol::OUTPUT_SIZE) . " in {$error['file']}:{$error['line']}" : '',
        );
        $this->removeMark();
    }

    /** The pool wants this process to end. A task that has asked for its cancellation may go on until it is killed. */
    private function terminate(): void
    {
        $this->vanishInFork();
        $this->terminating = $this->state === self::BUSY;
        if ($this->terminating) {
            return;
        }
        $this->flush(0);
        if ($this->cancellation !== null) {
            $this->leaving = true;
            $this->cancellation->cancel();

            return;
        }
        pcntl_signal(self::TERM, \SIG_DFL);
        $this->vanish(self::TERM); // the signal that it was sent
    }

    private function captureOutput(): void
    {
        ob_start(function (string $output): string {
            if (getmypid() !== $this->pid) {
                return $output; // a fork that a task has made has the same standard output, which the pool gets as well
            }
            for ($at = 0; $at < \strlen($output); $at += Protocol::OUTPUT_SIZE) {
                $this->tell(Protocol::OUTPUT, substr($output, $at, Protocol::OUTPUT_SIZE));
            }

            return '';
        }, 1);
    }

    private function removeMark(): void
    {
        if ($this->hasMark && getmypid() === $this->pid) {
            Mark::remove($this->markKey);
        }
    }
}
