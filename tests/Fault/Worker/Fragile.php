<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A task, argument and result that ends its process at a chosen moment, but only in a worker. */
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

    /** Calls it as the argument of a task. */
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
