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

    private int $taken = 0;

    /** Whether the engine may have items that were not fetched. */
    private bool $more = true;
    private bool $over = false;

    private ?string $outcome = null;
    private ?\Throwable $failure = null;

    /** @var Suspension<null>|null */
    private ?Suspension $reader = null;

    public function __construct(
        private readonly JobFactory $sender,
        private readonly string $id,
        private readonly mixed $key,
    ) {}

    public function __destruct()
    {
        // otherwise another process may read the items
        if (!$this->over && $this->outcome === null && ($this->taken > 0 || $this->sender->isOwn($this->id))) {
            [$sender, $id] = [$this->sender, $this->id];
            EventLoop::queue(static fn() => $sender->leaveItems($id));
        }
    }

    /** Returns a waiter with only a weak reference to this stream. */
    public function waiter(): OutcomeReceiver
    {
        return new ItemReceiver($this->sender, \WeakReference::create($this));
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> */
    public function items(): \Generator
    {
        while (true) {
            if ($this->more) {
                $this->more = false;
                $frames = $this->sender->takeItems($this->id, $this->taken, self::MAX_ITEMS_PER_REQUEST);
                if (\count($frames) === self::MAX_ITEMS_PER_REQUEST) {
                    $this->more = true;
                }
                foreach ($frames as $frame) {
                    try {
                        [$key, $item] = $this->sender->item($this->id, $frame, $this->taken, $this->key);
                    } catch (JobLostException $gone) {
                        $this->over = true; // another reader has them, and may want the others

                        throw $gone;
                    }
                    ++$this->taken;
                    OneWayGenerator::refuse(yield $key => $item);
                }
            } elseif ($this->failure !== null) {
                $this->over = true;

                throw $this->failure;
            } elseif ($this->outcome !== null) {
                $this->over = true;

                return $this->sender->returned($this->id, $this->outcome, $this->key, $this->taken);
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

    public function more(): void
    {
        $this->more = true;
        $this->wake();
    }

    /** Records the outcome. All items are stored before it, and the remaining ones are fetched first. */
    public function ended(string $outcome): void
    {
        $this->outcome = $outcome;
        $this->more();
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
