<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Amp\CancelledException;
use Amp\DeferredFuture;
use Amp\TimeoutCancellation;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\CannotWaitException;
use Symfony\Component\HttpClient\Chunk\FirstChunk;
use Symfony\Component\HttpClient\Exception\TransportException;
use Symfony\Component\HttpClient\Internal\ClientState;

/** The incomplete responses of a {@see \Spindle\Http\Client\SymfonyClient}, with the parts that have arrived. */
final class SymfonyState extends ClientState
{
    /** Maximum bytes of a stored piece. Symfony decompresses a piece in one call: 16 KiB to at most about 16 MiB. */
    private const PIECE_BYTES = 16_384;

    /** Maximum number of stored pieces of a body. Together, the pieces have at most 1 MiB. */
    private const MAX_PIECES = 64;

    /** @var array<array-key, array<int, DeferredFuture<mixed>>> pending waits for the next part, by id of response */
    private array $waits = [];

    /** @var list<array-key> ids of the responses for which the next call of {@see await()} waits */
    private array $awaited = [];

    /**
     * Stores parts of a response in Symfony's format: bytes of the body, or a FirstChunk. The last two parts of a
     * response are null and its failure (null for a success). Ignores a response that the caller has dropped.
     */
    public function add(string $id, mixed ...$activities): void
    {
        if (isset($this->openHandles[$id])) {
            $this->append($id, ...$activities);
            $this->notify($id);
        }
    }

    public function append(string $id, mixed ...$activities): void
    {
        $this->handlesActivity[$id] = [...$this->parts($id), ...$activities];
    }

    /** Stores bytes of a body, at most {@see freeBytes()}. Joins short pieces, because each piece costs memory. */
    public function addBytes(string $id, string $bytes): void
    {
        $parts = $this->parts($id);
        $last = array_pop($parts);
        if (\is_string($last) && \strlen($last) < self::PIECE_BYTES) {
            $this->handlesActivity[$id] = [...$parts, $last . $bytes];
            $this->notify($id);
        } else {
            $this->add($id, $bytes);
        }
    }

    /** Returns how many bytes of a body can be added now; 0 while 1 MiB of unread bytes is stored. */
    public function freeBytes(string $id): int
    {
        $parts = $this->parts($id);
        $count = \count($parts);
        $last = $parts[$count - 1] ?? null;
        $free = self::PIECE_BYTES - (\is_string($last) ? \strlen($last) : 0);
        $maximum = self::MAX_PIECES + (int) (($parts[0] ?? null) instanceof FirstChunk);

        return $free === 0 && $count < $maximum ? self::PIECE_BYTES : $free;
    }

    public function isHalfEmpty(string $id): bool
    {
        return \count($this->parts($id)) <= self::MAX_PIECES / 2;
    }

    /** @return list<mixed> the stored parts of a response */
    private function parts(string $id): array
    {
        $parts = $this->handlesActivity[$id] ?? [];

        return \is_array($parts) ? array_values($parts) : [];
    }

    public function remove(string $id): void
    {
        unset($this->openHandles[$id], $this->handlesActivity[$id]);
        $this->notify($id);
    }

    private function notify(string $id): void
    {
        foreach ($this->waits[$id] ?? [] as $wait) {
            if (!$wait->isComplete()) {
                $wait->complete();
            }
        }
    }

    /** @param list<array-key> $ids responses of the next {@see await()}. Other fibers may replace them before */
    public function expect(array $ids): void
    {
        $this->awaited = $ids;
    }

    /**
     * Suspends until a response given to {@see expect()} gets a part. Returns false after `$seconds` without a part.
     *
     * @throws TransportException when PHP can't suspend the caller
     */
    public function await(float $seconds): bool
    {
        try {
            FiberSwitch::ensurePossibleAfterBegin();
        } catch (CannotWaitException $impossible) {
            throw new TransportException($impossible->getMessage(), 0, $impossible);
        }
        $ids = $this->awaited;
        $wait = new DeferredFuture();
        $key = spl_object_id($wait);
        foreach ($ids as $id) {
            $this->waits[$id][$key] = $wait;
        }
        try {
            $wait->getFuture()->await(self::timeout($seconds));

            return true;
        } catch (CancelledException) {
            return false;
        } finally {
            foreach ($ids as $id) {
                unset($this->waits[$id][$key]);
                if ($this->waits[$id] === []) {
                    unset($this->waits[$id]);
                }
            }
        }
    }

    public static function timeout(float $seconds): TimeoutCancellation
    {
        return new TimeoutCancellation(max(0.0, min($seconds, 1e6)));
    }
}
