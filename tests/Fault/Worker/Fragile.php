<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A task, an argument and a result, in the hands of which an ending happens at some moment, in a worker only. */
final class Fragile
{
    private readonly int $owner;

    public function __construct(private readonly Moment $moment, private readonly Ending $ending)
    {
        $this->owner = (int) getmypid();
    }

    /** @return array{Moment, Ending, int} */
    public function __serialize(): array
    {
        $this->reach(Moment::Serializing);

        return [$this->moment, $this->ending, $this->owner];
    }

    /** @param array{Moment, Ending, int} $data */
    public function __unserialize(array $data): void
    {
        [$this->moment, $this->ending, $this->owner] = $data;
        $this->reach(Moment::Unserializing);
    }

    public function __invoke(): self
    {
        return self::through($this);
    }

    /** As a task that is given one. */
    public static function through(self $fragile): self
    {
        $fragile->reach(Moment::Running);

        return $fragile;
    }

    private function reach(Moment $moment): void
    {
        if ($moment === $this->moment && getmypid() !== $this->owner) {
            $this->ending->happens();
        }
    }
}
