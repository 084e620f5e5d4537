<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\Command;

/**
 * A command between the caller who gave it and the result that it ends with, through all its attempts.
 */
final class Ticket
{
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
    public ?Feeder $feeder = null;

    /** Which launcher has it; null while none does. */
    public ?Launcher $launcher = null;

    /** How often it could not be started for want of processes or descriptors while no command ran that could free some. */
    public int $refusals = 0;

    /** It was asked back to be given to another launcher. */
    public bool $moving = false;

    /** @param int $lane the launcher starts commands of different lanes in turn */
    public function __construct(
        public readonly int $id,
        public readonly int $lane,
        public readonly mixed $key,
        public readonly Command $command,
        public readonly TicketOwner $owner,
        private readonly CaptureStore $store,
    ) {
        $this->begin();
    }

    /** Forgets the output of an attempt before. */
    public function begin(): void
    {
        $this->stdout = new Capture($this->store);
        $this->stderr = new Capture($this->store);
    }

    /** Whether another attempt would read the same input. */
    public function isRepeatable(): bool
    {
        return $this->command->input === null || \is_string($this->command->input);
    }
}
