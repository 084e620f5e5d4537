<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** Results of a map() call that are generators ({@see StoredItems}). If the map ends early, ends their tasks. */
final class MapStreams
{
    /** @var \WeakMap<StoredItems, ItemReceiver> */
    private \WeakMap $receivers;

    public function __construct()
    {
        $this->receivers = new \WeakMap();
    }

    public function add(StoredItems $stream): ItemReceiver
    {
        return $this->receivers[$stream] = $stream->waiter();
    }

    /** Forgets the generators, so that {@see end()} does nothing. */
    public function clear(): void
    {
        $this->receivers = new \WeakMap();
    }

    /**
     * Ends the generators whose tasks are running. From then on, $receiver gets the outcomes of these tasks.
     *
     * @return list<string> ids of the jobs
     */
    public function end(\Throwable $reason, OutcomeReceiver $receiver): array
    {
        $ids = [];
        foreach ($this->receivers as $stream => $itemReceiver) {
            if ($stream->isRunning()) {
                $receiver->client()->shared()?->waiters->replace($stream->id, $itemReceiver, $receiver);
                $itemReceiver->fail($reason);
                $ids[] = $stream->id;
            }
        }

        return $ids;
    }
}
