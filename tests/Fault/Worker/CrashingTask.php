<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A task, argument and result that ends its process at a chosen moment, but only in a worker. */
final class CrashingTask
{
    private readonly int $owner;

    public function __construct(private readonly TaskPhase $moment, private readonly ProcessEnding $ending)
    {
        $this->owner = (int) getmypid();
    }

    /** @return array{TaskPhase, ProcessEnding, int} */
    public function __serialize(): array
    {
        $this->reach(TaskPhase::Serializing);

        return [$this->moment, $this->ending, $this->owner];
    }

    /** @param array{TaskPhase, ProcessEnding, int} $data */
    public function __unserialize(array $data): void
    {
        [$this->moment, $this->ending, $this->owner] = $data;
        $this->reach(TaskPhase::Unserializing);
    }

    public function __invoke(): self
    {
        return self::through($this);
    }

    /** Calls it as the argument of a task. */
    public static function through(self $fragile): self
    {
        $fragile->reach(TaskPhase::Running);

        return $fragile;
    }

    private function reach(TaskPhase $moment): void
    {
        if ($moment === $this->moment && getmypid() !== $this->owner) {
            $this->ending->happens();
        }
    }
}
