<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Amp\DeferredFuture;

/** Announced changes that one follower has not read yet. */
final class Follower
{
    /** Number of unread changes of a slow follower above which they are replaced by null, for "some were missed". */
    private const MAX_UNREAD = 1_000;

    /** @var list<AnnouncedChange|null> */
    private array $unread = [];

    /** @var DeferredFuture<null> complete as soon as a change is available */
    private DeferredFuture $arrival;

    public function __construct()
    {
        $this->arrival = new DeferredFuture();
    }

    /** @param list<AnnouncedChange|null> $announced */
    public function add(array $announced): void
    {
        $this->unread = \count($this->unread) + \count($announced) > self::MAX_UNREAD
            ? [null]
            : [...$this->unread, ...$announced];
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
     * @return list<AnnouncedChange|null>
     *
     * @throws \Throwable the failure of the listener
     */
    public function take(?Cancellation $cancellation): array
    {
        $this->arrival->getFuture()->await($cancellation);
        $unread = $this->unread;
        $this->unread = [];
        $this->arrival = new DeferredFuture();

        return $unread;
    }
}
