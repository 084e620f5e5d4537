<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Remote\Broker;

/** Stores the items of a task that is a generator, as many ahead as there is room for. */
final class Outlet
{
    /** Items that may lie in the engine untaken, and seconds until that is looked at again though nobody has said that some were taken. */
    private const WINDOW = 32;
    private const LOOK = 1.0;

    public function __construct(
        private readonly Broker $broker,
        private readonly string $queue,
        private readonly string $owner,
        private readonly Assignment $job,
        private readonly Verdicts $verdicts,
    ) {}

    /**
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     *
     * @return string what it has returned
     *
     * @throws CancelledException when nobody wants more
     */
    public function send(\Generator $items): string
    {
        $untaken = $this->put([]);
        foreach ($items as $item) {
            $untaken = $this->put([$this->verdicts->item($this->job->delivery, $this->job->items, \is_string($item) ? $item : '')]);
            while ($untaken >= self::WINDOW) {
                $this->wait();
                $untaken = $this->put([]);
            }
        }
        $result = $items->getReturn();

        return \is_string($result) ? $result : '';
    }

    /**
     * @param list<string> $frames
     *
     * @return int how many are untaken
     */
    private function put(array $frames): int
    {
        $untaken = $this->broker->putItems($this->queue, $this->owner, $this->job->delivery->id, $this->job->delivery->number, $this->job->items, $frames);
        $this->job->cancellation()->throwIfRequested();
        if ($untaken === null) {
            throw new CancelledException();
        }
        $this->job->items += \count($frames);

        return $untaken;
    }

    private function wait(): void
    {
        $suspension = EventLoop::getSuspension();
        $timer = EventLoop::delay(self::LOOK, $suspension->resume(...));
        $this->job->taken = static function () use ($suspension, $timer): void {
            EventLoop::cancel($timer);
            $suspension->resume();
        };
        $suspension->suspend();
        $this->job->taken = null;
    }
}
