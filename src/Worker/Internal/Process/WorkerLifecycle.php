<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Amp\Cancellation;
use Amp\DeferredCancellation;
use Spindle\Internal\Warnings;
use Spindle\Worker\Internal\ClosureStream;
use Spindle\Worker\Internal\SharedFlags;
use Spindle\Worker\Internal\WorkerProtocol;

/**
 * Handles the start and the end of a worker. Sends the output and the reports of tasks, and the worker's exit report.
 * SIGTERM never ends a worker in the middle of a frame; SIGKILL may do so. A fork that a task has made sends no frames.
 */
final class WorkerLifecycle
{
    public const WAITING_FOR_FRAME = 0;
    public const RUNNING_OWN_CODE = 1;
    public const RUNNING_TASK = 2;

    private const SIGKILL = 9;
    private const SIGTERM = 15;

    private const NO_BUFFER = -1;

    private const FATAL = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR | \E_RECOVERABLE_ERROR;

    /** Current activity. In RUNNING_OWN_CODE (Spindle's code), SIGTERM takes effect at the next {@see setState()}. */
    public int $state = self::WAITING_FOR_FRAME;

    /** Whether the worker is receiving or decoding tasks, so that their size may be the cause of a lack of memory. */
    public bool $isReceiving = false;

    /** Memory in bytes before the worker began to receive the current frame. */
    public int $memoryBefore = 0;

    /** Cancellation of the running task; null until the task obtains it. */
    public ?DeferredCancellation $cancellation = null;

    private readonly int $pid;

    private bool $hasSharedMemory = false;

    private bool $terminating = false; // SIGTERM has arrived during RUNNING_OWN_CODE

    /** Whether the worker ends after the running task. Set by SIGTERM if the task has obtained its Cancellation. */
    private bool $endsAfterTask = false;

    private bool $ended = false;

    /** Value of ob_get_level() after the worker has opened its output buffer; NO_BUFFER after this buffer has ended. */
    private int $bufferLevel = self::NO_BUFFER;

    /** @var string|null bytes to release before the exit report, because a fatal error may have left no memory */
    private ?string $reserve; // @phpstan-ignore property.onlyWritten

    /**
     * @param int  $sharedMemoryKey key of the shared memory, see {@see SharedFlags}; 0 for none
     * @param bool $isThread whether the worker is a thread. A thread handles no signals, and
     *     {@see WorkerBoot::endThread()} reports the thread's exit
     */
    public function __construct(
        private readonly PoolLink $link,
        private readonly ResultBuffer $results,
        private readonly int $sharedMemoryKey,
        private readonly bool $isThread,
    ) {
        $this->pid = (int) getmypid();
        $this->reserve = str_repeat('x', 1 << 16);
    }

    /** Sets up output, exit report and SIGTERM handler. Returns the shared memory; null if PHP cannot create it. */
    public function begin(): ?\Shmop
    {
        $this->captureOutput();
        if (!$this->isThread) {
            register_shutdown_function($this->reportExit(...));
            if (\function_exists('pcntl_signal')) {
                pcntl_async_signals(true);
                // `false`: PHP does not restart system calls, so SIGTERM ends the wait for a frame. With `true`, the
                // handler would run only after a frame has arrived.
                pcntl_signal(self::SIGTERM, $this->terminate(...), false);
            }
        }
        // SIGTERM may arrive during create(). The signal handler removes the memory only if this property is set.
        $this->hasSharedMemory = $this->sharedMemoryKey !== 0;
        $memory = SharedFlags::create($this->sharedMemoryKey);
        $this->hasSharedMemory = $memory !== null;

        return $memory;
    }

    /** @return array{int, int, string}|null {@see PoolLink::receive()}; SIGTERM may end the worker during the wait */
    public function receive(): ?array
    {
        $this->setState(self::WAITING_FOR_FRAME);
        $frame = $this->link->receive();
        $this->state = self::RUNNING_OWN_CODE;

        return $frame;
    }

    /** Sets the state, and handles a SIGTERM that arrived during RUNNING_OWN_CODE. */
    public function setState(int $state): void
    {
        $this->state = $state;
        if ($this->terminating) {
            $this->terminate();
        }
    }

    /** Sends results, then handles SIGTERM. Kills this process if a task forked it or the pool has disconnected. */
    public function flush(int $flags): void
    {
        $this->killSelfInFork();
        $state = $this->state;
        $this->state = self::RUNNING_OWN_CODE;
        $this->results->send($flags) || $this->killSelf();
        $this->setState($state);
    }

    /** Sends output or a report of the running task. Does nothing in a process that a task has forked. */
    public function send(int $type, string $bytes): void
    {
        if (getmypid() === $this->pid) {
            $state = $this->state;
            $this->state = self::RUNNING_OWN_CODE;
            $this->link->send($type, $this->results->batch, '', $bytes);
            $this->setState($state);
        }
    }

    public function cancellation(): Cancellation
    {
        return ($this->cancellation ??= new DeferredCancellation())->getCancellation();
    }

    /** Called after a task that obtained its Cancellation. Ends the worker if SIGTERM arrived during the task. */
    public function endIfCancelled(): void
    {
        $this->cancellation = null;
        if ($this->endsAfterTask) {
            $this->flush(0);
            $this->killSelf();
        }
    }

    /** Closes buffers that a task left open, or reopens the worker's buffer. Kills this process if a task forked it. */
    public function repairOutput(): void
    {
        if (ob_get_level() !== $this->bufferLevel || self::isBufferDisabled()) {
            $this->killSelfInFork();
            while (ob_get_level() > $this->bufferLevel && self::closeBuffer());
            self::isBufferDisabled() && ob_end_clean();
            if (ob_get_level() !== $this->bufferLevel) {
                $this->captureOutput();
            }
        }
    }

    /** Returns whether PHP has disabled the innermost buffer. PHP does so if the callback of an inner buffer threw. */
    private static function isBufferDisabled(): bool
    {
        /** @var array{flags?: int} $buffer */
        $buffer = ob_get_status();

        return (($buffer['flags'] ?? 0) & \PHP_OUTPUT_HANDLER_DISABLED) !== 0;
    }

    /** Sets the state after a task threw. In a fork that the task made, rethrows, so that PHP reports the exception. */
    public function handleFailure(\Throwable $thrown): void
    {
        if (getmypid() !== $this->pid) {
            throw $thrown;
        }
        $this->state = self::RUNNING_OWN_CODE;
        $this->isReceiving = false;
    }

    /** Returns whether this process is a fork that a task has made. */
    public function isFork(): bool
    {
        return getmypid() !== $this->pid;
    }

    public function killSelfInFork(): void
    {
        if ($this->isFork()) {
            $this->killSelf();
        }
    }

    /**
     * Ends this process by a signal. Destructors and shutdown functions of the task do not run. In a thread, or without
     * ext-posix, this method calls exit() instead.
     */
    public function killSelf(int $signal = self::SIGKILL): never
    {
        $this->removeSharedMemory();
        if (\function_exists('posix_kill') && !($this->isThread && getmypid() === $this->pid)) {
            foreach ([$signal, self::SIGKILL] as $each) { // a task may have blocked the first signal
                posix_kill((int) getmypid(), $each);
            }
        }
        $this->ended = true;
        exit(255);
    }

    public function setEnded(): void
    {
        $this->ended = true;
    }

    /** Sends the exit report, unless {@see setEnded()} was called, and removes shared memory. */
    public function reportExit(): void
    {
        if ($this->ended) {
            $this->removeSharedMemory();

            return;
        }
        if (getmypid() !== $this->pid) {
            $this->ended = true; // a task created this fork, and the fork called exit()

            return;
        }
        $this->state = self::RUNNING_OWN_CODE;
        $this->reserve = null;
        $peak = memory_get_peak_usage(true);
        $this->flush(0);
        $error = error_get_last();
        $fatal = $error !== null && ($error['type'] & self::FATAL) !== 0;
        $this->link->send(
            WorkerProtocol::EXIT_REPORT,
            $this->results->batch,
            pack('PPC', $peak, $this->memoryBefore, $this->isReceiving ? 1 : 0),
            $fatal ? self::fatalText($error) : '',
        );
        $this->removeSharedMemory();
    }

    /** @param array{message: string, file: string, line: int} $error */
    private static function fatalText(array $error): string
    {
        // If no task was a closure, ClosureStream is not loaded, and the error has the name of a real file.
        $isLoaded = class_exists(ClosureStream::class, false);
        $file = $isLoaded ? ClosureStream::originalFile($error['file']) : $error['file'];

        return substr($error['message'], 0, WorkerProtocol::MAX_OUTPUT_BYTES) . " in {$file}:{$error['line']}";
    }

    /** Handles SIGTERM. A task that has obtained its Cancellation may continue until the pool kills the worker. */
    private function terminate(): void
    {
        $this->killSelfInFork();
        $this->terminating = $this->state === self::RUNNING_OWN_CODE;
        if ($this->terminating) {
            return;
        }
        $this->flush(0);
        if ($this->cancellation !== null) {
            $this->endsAfterTask = true;
            $this->cancellation->cancel();

            return;
        }
        pcntl_signal(self::SIGTERM, \SIG_DFL);
        $this->killSelf(self::SIGTERM); // not SIGKILL, so that the exit status shows SIGTERM
    }

    /** @return bool false for a buffer that cannot be removed */
    private static function closeBuffer(): bool
    {
        try {
            return Warnings::suppressed(static fn(): bool => ob_end_flush());
        } catch (\Throwable $thrown) { // The callback threw. PHP has removed the buffer.
            error_log("The callback of an output buffer that a task left open threw: {$thrown}");

            return true;
        }
    }

    private function captureOutput(): void
    {
        ob_start(function (string $output, int $phase): string {
            if (($phase & \PHP_OUTPUT_HANDLER_FINAL) !== 0) {
                $this->bufferLevel = self::NO_BUFFER; // a task has ended the buffer, or the process ends
            }
            if (getmypid() !== $this->pid) {
                return $output; // a task's fork writes to standard output. The pool receives that output, too
            }
            for ($at = 0; $at < \strlen($output); $at += WorkerProtocol::MAX_OUTPUT_BYTES) {
                $this->send(WorkerProtocol::OUTPUT, substr($output, $at, WorkerProtocol::MAX_OUTPUT_BYTES));
            }

            return '';
        }, 1);
        $this->bufferLevel = ob_get_level();
    }

    private function removeSharedMemory(): void
    {
        if ($this->hasSharedMemory && getmypid() === $this->pid) {
            SharedFlags::remove($this->sharedMemoryKey);
        }
    }
}
