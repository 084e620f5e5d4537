<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Command;
use Spindle\Command\Output;
use Spindle\Command\SpoolException;
use Spindle\Internal\Launcher\Protocol;

/**
 * A command between the caller who gave it and the result that it ends with, through all its attempts; and this process's
 * end of its streams.
 */
final class Ticket
{
    /** Input up to this size travels with the command, in bytes. */
    private const INLINE = 1 << 16;

    public int $attempts = 0;
    public Capture $stdout;
    public Capture $stderr;

    /** Why its result is a failure whatever its process says; it is cancelled for that. */
    public ?string $error = null;
    public ?\Throwable $thrown = null;
    public bool $cancelled = false;

    /** The attempt that runs is the last one, whatever becomes of it. */
    public bool $final = false;

    /** @var array<int, Sink> where streamed output goes, by the frame's type */
    public array $sinks = [];

    /** Where its input comes from, unless it travels with the command. */
    public ?Feeder $feeder = null;

    /** Which launcher has it; null while none does. */
    public ?Launcher $launcher = null;

    /** It was asked back to be given to another launcher. */
    public bool $moving = false;

    /** It runs, or is about to; known where the launcher tells of each start, and of those that were asked back. */
    public bool $started = false;

    /** The working directory and the umask of this process when it gave the command, for all attempts. */
    public readonly string $currentDirectory;
    public readonly int $umask;

    /** The credentials of this process when the command first went to a launcher; null before. */
    public ?string $credentials = null;

    /** How many launchers have died while they ran it; counted where commands are given to another then. */
    public int $deaths = 0;

    /**
     * @param int                      $lane        the launcher starts commands of different lanes in turn
     * @param array<array-key, string> $environment variables that it starts from
     */
    public function __construct(
        public readonly int $id,
        public readonly int $lane,
        public readonly mixed $key,
        public readonly Command $command,
        public readonly TicketOwner $owner,
        private readonly CaptureStore $store,
        public readonly array $environment,
    ) {
        $this->currentDirectory = (string) getcwd();
        $this->umask = umask();
        $this->begin();
    }

    /** Forgets the output of an attempt before. */
    public function begin(): void
    {
        $this->stdout = new Capture($this->store);
        $this->stderr = new Capture($this->store);
    }

    /** Makes the sinks and the feeder that it needs; once for each launcher that it is given to. */
    public function connect(): void
    {
        foreach ([Protocol::STDOUT => $this->command->stdout, Protocol::STDERR => $this->command->stderr] as $type => $target) {
            if (!$target instanceof Output) {
                $this->sinks[$type] ??= new Sink(
                    $target,
                    fn(int $bytes) => $this->tell(Protocol::OUTPUT_TAKEN, pack('V', $bytes)),
                    $this->fail(...),
                );
            }
        }
        $input = $this->command->input;
        $this->feeder?->stop();
        if ($input !== null && (!\is_string($input) || \strlen($input) > self::INLINE)) {
            $this->feeder = new Feeder(
                $input,
                fn(string $bytes) => $this->tell(Protocol::INPUT, $bytes),
                fn() => $this->tell(Protocol::INPUT_END),
                $this->fail(...),
            );
        }
    }

    /**
     * @param int $type the frame's
     *
     * @throws SpoolException when it can't be kept
     */
    public function write(int $type, string $bytes): void
    {
        if (isset($this->sinks[$type])) {
            $this->sinks[$type]->write($bytes);
        } elseif ($this->error === null) {
            ($type === Protocol::STDOUT ? $this->stdout : $this->stderr)->append($bytes);
        }
    }

    /** Something on this side of the command failed: it is ended, and its outcome is that failure. */
    public function fail(\Throwable $thrown): void
    {
        if ($thrown instanceof SpoolException) {
            $this->error ??= $thrown->getMessage();
        } else {
            $this->thrown ??= $thrown;
        }
        $this->tell(Protocol::CANCEL);
    }

    /** @param \Closure(): void $then called when all of its sinks have delivered what they had, if it has any */
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
        return $this->command->input === null || \is_string($this->command->input) || $this->feeder?->isStarted() === false;
    }

    /** Its output is of no more interest: what callbacks and streams have not taken is dropped. */
    public function discardOutput(): void
    {
        foreach ($this->sinks as $sink) {
            $sink->discard();
        }
    }

    private function tell(int $type, string $payload = ''): void
    {
        $this->launcher?->send(Protocol::frame($type, $this->id, $payload));
    }
}
