<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\ClientClosedException;
use Spindle\Http\Client\ConnectionLostException;
use Spindle\Http\Client\InvalidRequestException;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Client\RequestTimeoutException;
use Spindle\Http\Internal\Message\BadMessageException;
use Spindle\Http\Internal\Message\ChunkDecoder;
use Spindle\Http\Internal\Message\MessageLimits;

/**
 * The body of a response. Each read receives the next bytes. After the last byte, the connection is free for the next
 * request. If the body is closed or dropped earlier, the connection is closed. A body can be read a second time only if
 * the body is short, or if getContents() has returned the whole body.
 */
final class ResponseBody implements StreamInterface
{
    use KeepsContents;

    private const TITLE = 'the body';

    /** Bytes of the body that have not arrived; null if chunks or the end of the connection delimit the body. */
    private ?int $remaining;

    private ?ChunkDecoder $chunks;

    /** @param ClientConnection|null $connection null once the body is complete or closed, or has failed */
    public function __construct(
        private ?ClientConnection $connection,
        private readonly OriginPool $pool,
        OutgoingRequest $request,
        private readonly ResponseHead $head,
        private readonly float $readTimeout,
        private readonly int $maxBodyBytes,
        private readonly ?Upload $upload,
    ) {
        $this->request = new \SensitiveParameterValue($request);
        if ($connection !== null) {
            $connection->isAnswered = true;
        }
        $this->remaining = $head->length;
        $this->chunks = $head->isChunked ? new ChunkDecoder(new MessageLimits()) : null;
        if ($head->length === 0 || $connection?->received !== '') {
            $this->decode();
        }
    }

    public function __destruct()
    {
        $this->close();
    }

    public function getSize(): ?int
    {
        return $this->head->length ?? ($this->connection === null && $this->failure === null
            ? $this->dropped + \strlen($this->bytes)
            : null);
    }

    public function isSeekable(): bool
    {
        $isKept = $this->connection === null || ($this->head->length ?? 0) <= self::MAX_KEPT_BYTES;

        return $isKept && $this->dropped === 0 && !$this->isClosed;
    }

    /** @throws InvalidResponseException when the contents exceed `RequestOptions::$maxBodyBytes` or the free memory */
    public function getContents(): string
    {
        $this->refuseSecondReader();
        if ($this->head->length > $this->maxBodyBytes) {
            throw $this->fail($this->tooLong());
        }
        while ($this->connection !== null && $this->dropped === 0) {
            $this->checkLength(\strlen($this->bytes));
            $this->receive(true);
        }
        if ($this->failure !== null) {
            throw $this->failure;
        }

        return $this->unreadContents();
    }

    public function read(int $length): string
    {
        $this->refuseSecondReader();
        while ($this->offset === \strlen($this->bytes) && $this->connection !== null) {
            $this->receive(false);
        }
        if ($this->failure !== null) {
            throw $this->failure;
        }
        $this->markUsed();
        $bytes = substr($this->bytes, $this->offset, $length);
        $this->offset += \strlen($bytes);

        return $bytes;
    }

    /** Records that the caller still reads. Otherwise, {@see StallTimeout} could make waiting requests fail. */
    public function markUsed(): void
    {
        $this->connection?->markUsed();
    }

    /** Returns true at the end of the body, and also after {@see close()}, although read() then throws. */
    public function eof(): bool
    {
        return $this->isClosed
            || $this->connection === null && $this->failure === null && $this->offset === \strlen($this->bytes);
    }

    public function close(): void
    {
        $this->isClosed = true;
        if ($this->connection !== null) {
            $this->pool->drop($this->connection);
            $this->connection = null;
        }
        $this->failure ??= new \RuntimeException('The body was closed');
        $this->discardUnread();
    }

    /** @param bool $keeps true to keep all bytes, for getContents(); false to discard bytes after MAX_KEPT_BYTES */
    private function receive(bool $keeps): void
    {
        $connection = $this->connection;
        if ($connection === null) {
            return;
        }
        if (!$keeps) {
            $this->discardLongPart();
        }
        $this->isReading = true;
        try {
            $hasBytes = $connection->receive('the rest of the response', $this->readTimeout, 'readTimeout');
        } catch (TimedOutException $late) {
            throw $this->fail(RequestTimeoutException::of($this->request(), $late->getMessage(), $late));
        } catch (ClosedException $closed) {
            throw $this->fail(ClientClosedException::of($this->request(), $closed->getMessage(), $closed));
        } catch (UnreadableBodyException $unreadable) { // the upload may continue after the head has arrived
            throw $this->fail(InvalidRequestException::ofBody($this->request(), $unreadable));
        } catch (\Throwable $failure) { // the call was cancelled
            throw $this->fail($failure);
        } finally {
            $this->isReading = false;
        }
        if ($this->isClosed) { // another fiber has closed this body
            return;
        }
        if ($hasBytes) {
            $this->decode();
        } elseif ($this->remaining === null && $this->chunks === null && $connection->readFailure === null) {
            $this->finish();
        } else {
            throw $this->fail(ConnectionLostException::of(
                $this->request(),
                ConnectionEndedException::describe($connection, 'within the body of the response'),
            ));
        }
    }

    private function decode(): void
    {
        $connection = $this->connection;
        if ($connection === null) {
            return;
        }
        if ($this->chunks !== null) {
            $offset = 0;
            try {
                $this->bytes .= $this->chunks->decode($connection->received, $offset);
            } catch (BadMessageException $malformed) {
                throw $this->fail(InvalidResponseException::of(
                    $this->request(),
                    lcfirst($malformed->getMessage()),
                    $malformed,
                ));
            }
            $connection->received = substr($connection->received, $offset);
            if ($this->chunks->hasEnded) {
                $this->finish();
            }
        } elseif ($this->remaining === null) {
            $this->bytes .= $connection->received;
            $connection->received = '';
        } elseif (\strlen($connection->received) < $this->remaining) {
            $this->remaining -= \strlen($connection->received);
            $this->bytes .= $connection->received;
            $connection->received = '';
        } else {
            $this->bytes .= substr($connection->received, 0, $this->remaining);
            $connection->received = substr($connection->received, $this->remaining);
            $this->finish();
        }
    }

    private function finish(): void
    {
        $connection = $this->connection;
        $this->connection = null;
        if ($connection !== null) {
            $this->head->isPersistent
                && $connection->isReusable
                && $connection->received === ''
                && $connection->hasSent()
                && $this->upload?->isComplete !== false
                ? $this->pool->release($connection)
                : $this->pool->drop($connection);
        }
    }

    private function hasKept(): bool
    {
        return $this->dropped === 0;
    }

    private function fail(\Throwable $failure): \Throwable
    {
        if ($this->connection !== null) {
            $this->pool->drop($this->connection);
            $this->connection = null;
        }
        $this->discardUnread();
        $this->request()->call->countFailure();

        return $this->failure = $failure;
    }
}
