<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Command;
use Spindle\Command\Output;
use Spindle\Command\StreamException;
use Spindle\Internal\Launcher\LauncherProtocol;

/** A submitted command without an outcome. Holds the state of its current attempt, its input and its output. */
final class PendingCommand
{
    /** Maximum bytes of input that are sent in the frame of the command. Longer input is sent in pieces. */
    private const MAX_INLINE_BYTES = 1 << 16;

    public int $attempts = 0;
    public Capture $stdout;
    public Capture $stderr;

    /** Reason why the input stream or an output failed. The command is ended, and its result has this error. */
    public ?string $ioError = null;

    /** Exception from the input or an output callback. The command is ended, and its owner gets the exception. */
    public ?\Throwable $thrown = null;

    public bool $cancelled = false;

    /** @var list<self>|null further arguments of {@see cancelFirstRunning()}, while the launcher has not answered it */
    public ?array $cancelNext = null;

    /** Whether the current attempt is the last, even if it fails. Set by {@see CommandDispatcher::withdraw()}. */
    public bool $isLastAttempt = false;

    /** @var array<int, Sink> targets of streamed output, by frame type */
    public array $sinks = [];

    /** Sends the input; null if there is no input, or if it is sent in the frame of the command. */
    public ?InputFeeder $feeder = null;

    public ?Launcher $launcher = null;

    /** Whether WITHDRAW was sent to move the command to another launcher, and the answer has not arrived. */
    public bool $isMoving = false;

    /**
     * Whether the launcher has reported the start. With the option `rerunAfterCrash` or `delay`, a launcher reports
     * each start. Otherwise, the launcher reports a start only if an older command still waits for a slot, or if a
     * WITHDRAW or CONFIGURE frame arrives after the start.
     */
    public bool $started = false;

    /** Whether this attempt or an earlier one may have started. Never reset. */
    public bool $mayHaveStarted = false;

    /** Working directory ('' if it was removed) and umask of this process at the submission, for all attempts. */
    public readonly string $currentDirectory;
    public readonly int $umask;

    /** User, groups and root directory of this process at the first assignment to a launcher; null before that. */
    public ?string $credentials = null;

    /** Bytes that a {@see TransportBackend} sends for the command. */
    public string $portable = '';

    /** Number of launchers that have died while they ran the command. Counted only with `rerunAfterCrash`. */
    public int $deaths = 0;

    /**
     * @param int                      $lane        number of the owner's queue, from {@see CommandDispatcher::open()}
     * @param array<array-key, string> $environment of this process, before the changes of {@see Command::$environment}
     */
    public function __construct(
        public readonly int $id,
        public readonly int $lane,
        public readonly mixed $key,
        public readonly Command $command,
        public readonly PendingCommandOwner $owner,
        private readonly CaptureStore $store,
        public readonly array $environment,
    ) {
        $this->currentDirectory = (string) getcwd();
        $this->umask = umask();
        $this->resetOutput();
    }

    public function resetOutput(): void
    {
        $this->stdout = new Capture($this->store);
        $this->stderr = new Capture($this->store);
    }

    /** Creates sinks for streamed output and a feeder for streamed or long input, when a launcher gets the command. */
    public function prepareStreams(): void
    {
        foreach ([
            LauncherProtocol::STDOUT => $this->command->stdout,
            LauncherProtocol::STDERR => $this->command->stderr,
        ] as $type => $target) {
            if (!$target instanceof Output) {
                $this->sinks[$type] ??= new Sink($target, $this);
            }
        }
        $input = $this->command->input;
        $this->feeder?->stop();
        if ($input !== null && (!\is_string($input) || \strlen($input) > self::MAX_INLINE_BYTES)) {
            $this->feeder = new InputFeeder($input, $this);
        }
    }

    /**
     * @param int $type STDOUT or STDERR of {@see LauncherProtocol}
     *
     * @throws StreamException when the output can't be stored
     */
    public function write(int $type, string $bytes): void
    {
        if (isset($this->sinks[$type])) {
            $this->sinks[$type]->write($bytes);
        } elseif ($this->ioError === null) {
            ($type === LauncherProtocol::STDOUT ? $this->stdout : $this->stderr)->append($bytes);
        }
    }

    /** Asks the launcher for captured output that the launcher would otherwise keep until the command ends. */
    public function requestOutput(): void
    {
        $this->send(LauncherProtocol::SEND_OUTPUT);
    }

    /** @param list<self> $commands the first that runs, or has a free slot, is ended; only launchers know this */
    public static function cancelFirstRunning(array $commands): void
    {
        do {
            $first = array_shift($commands);
        } while ($first !== null && $first->launcher === null);
        if ($first !== null) {
            $first->cancelNext = $commands;
            $first->send(LauncherProtocol::CANCEL, LauncherProtocol::IF_RUNNING);
        }
    }

    /** Handles the answer that no slot was free for this command when the launcher got the request to end it. */
    public function onStillWaiting(): void
    {
        $others = $this->cancelNext ?? [];
        $this->cancelNext = null;
        self::cancelFirstRunning($others);
    }

    /** Reports that bytes of streamed output were delivered or dropped, so that the launcher sends more. */
    public function acknowledgeOutput(int $bytes): void
    {
        $this->send(LauncherProtocol::OUTPUT_TAKEN, pack('V', $bytes));
    }

    public function sendInput(string $bytes): void
    {
        $this->send(LauncherProtocol::INPUT, $bytes);
    }

    public function endInput(): void
    {
        $this->send(LauncherProtocol::INPUT_END);
    }

    /**
     * Ends the command because of a failure in this process. The failure becomes the outcome.
     *
     * @param bool $isOfCaller whether the caller's function or iterable threw the exception, which is then rethrown
     */
    public function fail(\Throwable $thrown, bool $isOfCaller = false): void
    {
        if (!$isOfCaller && $thrown instanceof StreamException) {
            $this->ioError ??= $thrown->getMessage();
        } else {
            $this->thrown ??= $thrown;
        }
        $this->send(LauncherProtocol::CANCEL);
    }

    /** @param \Closure(): void $then called when no sink has output left to deliver; not called if there is no sink */
    public function whenDelivered(\Closure $then): void
    {
        $left = \count($this->sinks);
        foreach ($this->sinks as $sink) {
            $sink->whenEmpty(static function () use ($then, &$left): void {
                if (--$left === 0) {
                    $then();
                }
            });
        }
    }

    /** Returns whether the current fiber runs a callback for the output, or the iterator of the input. */
    public function callbackRunsInCurrentFiber(): bool
    {
        $isCurrent = static fn(Sink $sink): bool => $sink->fiber->isCurrent();

        return array_filter($this->sinks, $isCurrent) !== [] || $this->feeder?->fiber->isCurrent() === true;
    }

    public function canRepeatInput(): bool
    {
        return $this->command->input === null
            || \is_string($this->command->input)
            || $this->feeder?->isStarted === false;
    }

    /** Returns whether another attempt is possible. The retry policy decides whether the attempt is made. */
    public function mayRetry(): bool
    {
        return !$this->cancelled && !$this->isLastAttempt && $this->ioError === null && $this->canRepeatInput();
    }

    /** Returns whether the command must not start (again): it was cancelled or withdrawn, or failed in this process. */
    public function mustEnd(): bool
    {
        return $this->cancelled || $this->isLastAttempt || $this->ioError !== null || $this->thrown !== null;
    }

    public function discardOutput(): void
    {
        foreach ($this->sinks as $sink) {
            $sink->discard();
        }
    }

    /** Drops references to and from this object, so that PHP frees the object after its outcome. */
    public function release(): void
    {
        $this->cancelNext = null;
        $this->feeder?->stop();
        foreach ($this->sinks as $sink) {
            $sink->release();
        }
    }

    private function send(int $type, string $payload = ''): void
    {
        $this->launcher?->process->send(LauncherProtocol::frame($type, $this->id, $payload));
    }
}
