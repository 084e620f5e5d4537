<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Amp\DeferredFuture;

/** What has been announced and one follower has not taken yet. */
final class Follower
{
    /** For one that is slower than the changes come, what waits is replaced by the remark that some were missed. */
    private const MOST = 1_000;

    /** @var list<Announced|null> */
    private array $waiting = [];

    /** @var DeferredFuture<null> complete as soon as there is something to take */
    private DeferredFuture $arrival;

    public function __construct()
    {
        $this->arrival = new DeferredFuture();
    }

    /** @param list<Announced|null> $announced */
    public function tell(array $announced): void
    {
        $this->waiting = \count($this->waiting) + \count($announced) > self::MOST ? [null] : [...$this->waiting, ...$announced];
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
     * Suspends until there is something.
     *
     * @return list<Announced|null>
     *
     * @throws \Throwable what it failed with
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
