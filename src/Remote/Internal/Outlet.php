<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Spindle\Internal\Clock;
use Spindle\Remote\Broker;
use Spindle\Worker\ResultBudget;

/** Stores the items of a task that is a generator, as many ahead as there is room for. */
final class Outlet
{
    /** Items that may lie in the engine untaken, and seconds until that is looked at again though nobody has said that some were taken. */
    private const WINDOW = 32;
    private const LOOK = 1.0;

    /**
     * @param \Generator<mixed, mixed, mixed, mixed>|null $items     let go when they are not read any more, which tells the task
     * @param float                                       $retention seconds after which nobody wants more if nothing is taken
     * @param ResultBudget                                $budget    of items that the engine has not taken in
     */
    public function __construct(
        private ?\Generator $items,
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $owner,
        private readonly Assignment $job,
        private readonly Verdicts $verdicts,
        private readonly float $retention,
        private readonly ResultBudget $budget,
    ) {
        $job->items = 0;
    }

    /**
     * @return string what it has returned
     *
     * @throws CancelledException when nobody wants more, and the task runs no more
     */
    public function send(): string
    {
        try {
            $result = $this->sendAll();
        } catch (\Throwable $failure) { // and not finally: a fiber that is destroyed can't wait
            $this->letGo();

            throw $failure;
        }
        $this->letGo();

        return $result;
    }

    private function letGo(): void
    {
        $this->items = null;
        $this->job->awaitOver();
    }

    private function sendAll(): string
    {
        $this->put([]);
        foreach ($this->references() as &$item) {
            $untaken = $this->putItem(\is_string($item) ? $item : '');
            $item = null; // in the generator, too
            for ($late = Clock::now() + $this->retention; $untaken >= self::WINDOW; $untaken = $this->put([])) {
                if (Clock::now() > $late) {
                    throw new CancelledException();
                }
                $this->job->awaitNews(self::LOOK);
            }
        }
        $result = $this->items?->getReturn();

        return \is_string($result) ? $result : '';
    }

    /** @return \Generator<mixed, mixed, mixed, mixed> the items, which are freed there when they are here */
    private function &references(): \Generator
    {
        $items = $this->items;
        if ($items !== null && (new \ReflectionGenerator($items))->getFunction()->returnsReference()) {
            foreach ($items as &$item) {
                yield $item;
            }
        } else {
            foreach ($items ?? [] as $item) {
                yield $item;
            }
        }
    }

    /** @return int how many are untaken */
    private function putItem(string $item): int
    {
        $size = \strlen($item);
        $this->budget->occupy($size);
        try {
            return $this->put([$this->verdicts->item($this->job->delivery, $this->job->items ?? 0, $item)]);
        } finally {
            $this->budget->release($size);
        }
    }

    /**
     * An engine that is not available is waited for, as long as the lease lasts.
     *
     * @param list<string> $frames none to say once more that there are items: the letter that said so may have been lost
     *
     * @return int how many are untaken
     */
    private function put(array $frames): int
    {
        $first = $frames === [] ? 0 : $this->job->items ?? 0;
        $untaken = Patience::ask(\INF, function () use ($first, $frames): ?int {
            $this->job->throwIfRequested();

            return $this->broker->putItems($this->queue, $this->owner, $this->job->delivery->id, $this->job->delivery->number, $first, $frames);
        });
        $this->job->throwIfRequested();
        if ($untaken === null) {
            throw new CancelledException();
        }
        $this->job->items = ($this->job->items ?? 0) + \count($frames);

        return $untaken;
    }
}
