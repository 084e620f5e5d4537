<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\Suspension;
use Spindle\Internal\Fibers;
use Spindle\Internal\OneWayGenerator;
use Spindle\Remote\JobLostException;

/** The reader's side of a generator task. Without references to it, no more items are wanted. */
final class ItemStream
{
    /** @var array<int, self> streams with a waiting reader, whose fiber may be referenced by nothing else */
    private static array $awaited = [];

    /** Items in one request. */
    private const MAX_ITEMS_PER_REQUEST = 32;

    private int $takenCount = 0;

    /** Whether the engine may have items that were not fetched. */
    private bool $mayHaveMore = true;
    private bool $isFinished = false;

    private ?string $outcome = null;
    private ?\Throwable $failure = null;

    /** @var Suspension<null>|null */
    private ?Suspension $reader = null;

    public function __construct(
        private readonly QueueClient $client,
        private readonly string $id,
        private readonly mixed $key,
    ) {}

    public function __destruct()
    {
        $isOnlyReader = $this->takenCount > 0 || $this->client->isOwn($this->id); // otherwise others may read the items
        if (!$this->isFinished && $this->outcome === null && $isOnlyReader) {
            [$client, $id] = [$this->client, $this->id];
            EventLoop::queue(static fn() => $client->leaveItems($id));
        }
    }

    /** Returns a waiter with only a weak reference to this stream. */
    public function waiter(): OutcomeReceiver
    {
        return new ItemReceiver($this->client, \WeakReference::create($this));
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> */
    public function items(): \Generator
    {
        while (true) {
            if ($this->mayHaveMore) {
                $this->mayHaveMore = false;
                $frames = $this->client->takeItems($this->id, $this->takenCount, self::MAX_ITEMS_PER_REQUEST);
                if (\count($frames) === self::MAX_ITEMS_PER_REQUEST) {
                    $this->mayHaveMore = true;
                }
                foreach ($frames as $frame) {
                    try {
                        [$key, $item] = $this->client->item($this->id, $frame, $this->takenCount, $this->key);
                    } catch (JobLostException $gone) {
                        $this->isFinished = true; // another reader has them, and may want the others

                        throw $gone;
                    }
                    ++$this->takenCount;
                    OneWayGenerator::refuse(yield $key => $item);
                }
            } elseif ($this->failure !== null) {
                $this->isFinished = true;

                throw $this->failure;
            } elseif ($this->outcome !== null) {
                $this->isFinished = true;

                return $this->client->generatorReturn($this->id, $this->outcome, $this->key, $this->takenCount);
            } else {
                self::$awaited[spl_object_id($this)] = $this;
                $this->reader = EventLoop::getSuspension();
                try {
                    Fibers::suspend($this->reader);
                } finally {
                    $this->reader = null;
                }
            }
        }
    }

    public function onItems(): void
    {
        $this->mayHaveMore = true;
        $this->wake();
    }

    /** Records the outcome. All items are stored before it, and the remaining ones are fetched first. */
    public function onOutcome(string $outcome): void
    {
        $this->outcome = $outcome;
        $this->onItems();
    }

    public function fail(\Throwable $failure): void
    {
        $this->failure = $failure;
        $this->wake();
    }

    private function wake(): void
    {
        unset(self::$awaited[spl_object_id($this)]);
        $reader = $this->reader;
        $this->reader = null;
        $reader?->resume();
    }
}
