<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Command;
use Spindle\Command\Output;
use Spindle\Command\SpoolException;
use Spindle\Internal\Launcher\LauncherProtocol;

/** A pending command through all its attempts, and this process's end of its streams. */
final class PendingCommand
{
    /** Maximum bytes of input that are sent with the command. */
    private const MAX_INLINE_BYTES = 1 << 16;

    public int $attempts = 0;
    public Capture $stdout;
    public Capture $stderr;

    /** Why the result is a failure, whatever the exit status is. The command is cancelled because of it. */
    public ?string $error = null;
    public ?\Throwable $thrown = null;
    public bool $cancelled = false;

    /** Whether the current attempt is the last one, whatever its outcome is. */
    public bool $final = false;

    /** @var array<int, Sink> targets of streamed output, by frame type */
    public array $sinks = [];

    /** Sends the input, unless it is sent with the command or there is none. */
    public ?InputFeeder $feeder = null;

    /** The launcher that has the command. */
    public ?Launcher $launcher = null;

    /** Whether it was asked back, to be given to another launcher. */
    public bool $moving = false;

    /** Whether the command runs or is about to, as far as the launcher has reported it. */
    public bool $started = false;

    /** Working directory and umask of this process when the command was submitted, for all attempts. */
    public readonly string $currentDirectory;
    public readonly int $umask;

    /** Credentials of this process when the command was first given to a launcher; null before. */
    public ?string $credentials = null;

    /** Number of launchers that died while they ran the command, if such commands are given to others. */
    public int $deaths = 0;

    /**
     * @param int                      $lane        group of commands; the launcher takes from the groups in turn
     * @param array<array-key, string> $environment variables that the command starts from
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

    /** Drops the output of the previous attempt. */
    public function resetOutput(): void
    {
        $this->stdout = new Capture($this->store);
        $this->stderr = new Capture($this->store);
    }

    /** Makes the necessary sinks and feeder; called once for each launcher that gets the command. */
    public function connect(): void
    {
        foreach ([
            LauncherProtocol::STDOUT => $this->command->stdout,
            LauncherProtocol::STDERR => $this->command->stderr,
        ] as $type => $target) {
            if (!$target instanceof Output) {
                $this->sinks[$type] ??= new Sink(
                    $target,
                    fn(int $bytes) => $this->send(LauncherProtocol::OUTPUT_TAKEN, pack('V', $bytes)),
                    $this->fail(...),
                );
            }
        }
        $input = $this->command->input;
        $this->feeder?->stop();
        if ($input !== null && (!\is_string($input) || \strlen($input) > self::MAX_INLINE_BYTES)) {
            $this->feeder = new InputFeeder(
                $input,
                fn(string $bytes) => $this->send(LauncherProtocol::INPUT, $bytes),
                fn() => $this->send(LauncherProtocol::INPUT_END),
                $this->fail(...),
            );
        }
    }

    /**
     * @param int $type type of the frame
     *
     * @throws SpoolException when the output can't be kept
     */
    public function write(int $type, string $bytes): void
    {
        if (isset($this->sinks[$type])) {
            $this->sinks[$type]->write($bytes);
        } elseif ($this->error === null) {
            ($type === LauncherProtocol::STDOUT ? $this->stdout : $this->stderr)->append($bytes);
        }
    }

    /** Ends the command after a failure in this process, and makes the failure its outcome. */
    public function fail(\Throwable $thrown): void
    {
        if ($thrown instanceof SpoolException) {
            $this->error ??= $thrown->getMessage();
        } else {
            $this->thrown ??= $thrown;
        }
        $this->send(LauncherProtocol::CANCEL);
    }

    /** @param \Closure(): void $then called when all sinks have delivered their output; never called without a sink */
    public function whenDrained(\Closure $then): void
    {
        $left = \count($this->sinks);
        foreach ($this->sinks as $sink) {
            $sink->whenDrained(static function () use ($then, &$left): void {
                if (--$left === 0) {
                    $then();
                }
            });
        }
    }

    /** Whether another attempt would read the same input. */
    public function isRepeatable(): bool
    {
        return $this->command->input === null
            || \is_string($this->command->input)
            || $this->feeder?->isStarted() === false;
    }

    /** Drops output that callbacks and streams have not received. */
    public function discardOutput(): void
    {
        foreach ($this->sinks as $sink) {
            $sink->discard();
        }
    }

    private function send(int $type, string $payload = ''): void
    {
        $this->launcher?->send(LauncherProtocol::frame($type, $this->id, $payload));
    }
}
