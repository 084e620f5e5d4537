<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Amp\DeferredFuture;

/** Announced changes that one follower has not read yet. */
final class Follower
{
    /** Number of unread changes of a slow follower above which they are replaced by null, for "some were missed". */
    private const MOST = 1_000;

    /** @var list<Announced|null> */
    private array $waiting = [];

    /** @var DeferredFuture<null> complete as soon as a change is available */
    private DeferredFuture $arrival;

    public function __construct()
    {
        $this->arrival = new DeferredFuture();
    }

    /** @param list<Announced|null> $announced */
    public function tell(array $announced): void
    {
        $this->waiting = \count($this->waiting) + \count($announced) > self::MOST
            ? [null]
            : [...$this->waiting, ...$announced];
        if (!$this->arrival->isComplete()) {
            $this->arrival->complete();
        }
    }

    public function fail(\Throwable $failure): void
    {
        if ($this->arrival->isComplete()) {
            $this->arrival = new DeferredFuture();
        }
        $this->arrival->getFuture()->ignore();
        $this->arrival->error($failure);
    }

    /**
     * Suspends until changes are available, and returns them.
     *
     * @return list<Announced|null>
     *
     * @throws \Throwable the failure of the listener
     */
    public function take(?Cancellation $cancellation): array
    {
        $this->arrival->getFuture()->await($cancellation);
        $taken = $this->waiting;
        $this->waiting = [];
        $this->arrival = new DeferredFuture();

        return $taken;
    }
}
