<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\ClientDisconnectedException;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\BodyLimited;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/**
 * The body of a request. The handler can read the received bytes before the whole body has arrived. If the handler
 * does not read, the server soon stops receiving, so that the client can't send more.
 *
 * A body is kept, and can be read again, up to a size that depends on the media type:
 * {@see \Spindle\Http\Internal\Form\BodyParser::maxKeptBytes()}. A longer body can be read only once.
 */
final class BodyStream implements StreamInterface, BodyLimited
{
    use ReadOnlyStream;

    /** Bodies up to this size are kept without a check of the media type, because this check is slow. */
    private const MAX_SHORT_BODY_BYTES = 65_536;

    private const READ_BYTES = 65_536;

    /** All received bytes if the body is kept; otherwise the last received piece. */
    private string $bytes = '';

    private int $offset = 0;

    /** @var int|null length of the body; null if unknown */
    private $length;

    /** Number of bytes of the body before {@see $bytes}. These bytes were dropped after the handler had read them. */
    private int $dropped = 0;

    private bool $ended = false;
    private bool $closed = false;

    /** Maximum bytes of the body; null for the server's option maxBodyBytes. */
    private ?int $limit = null;

    /** Exception for a body of unknown length that has exceeded the limit. Each further read throws it again. */
    private ?HttpException $refusal = null;

    /**
     * Declares no native types, because checking them would take longer than all other work for a request's body.
     *
     * @param ConnectionReference $connection
     * @param ServerExchange      $exchange
     */
    public function __construct(private $connection, private $exchange)
    {
        $this->length = $exchange->head->length;
    }

    /** @return array<string, mixed> without properties that lead to the server and to requests of other clients */
    public function __debugInfo(): array
    {
        return ['size' => $this->getSize(), 'position' => $this->tell(), 'bytes' => $this->bytes];
    }

    public function limit(int $bytes): void
    {
        $this->limit = $bytes;
    }

    /** Makes the body empty. Called after a form was parsed, if bodies of its media type are not kept. */
    public function becomeEmpty(): void
    {
        [$this->bytes, $this->offset, $this->dropped, $this->length] = ['', 0, 0, 0];
    }

    /** Drops the body when the request ends. Each later read throws an exception, even if the whole body was read. */
    public function release(): void
    {
        $this->becomeEmpty();
        [$this->length, $this->ended] = [$this->exchange->head->length, false];
    }

    public function getSize(): ?int
    {
        return $this->length;
    }

    /** Returns the whole body if it can be read again, otherwise the unread rest. */
    public function __toString(): string
    {
        if ($this->offset > 0 && $this->isSeekable()) {
            $this->offset = 0;
        }

        return $this->getContents();
    }

    public function getContents(): string
    {
        $length = $this->length;
        if (
            $this->offset === 0
            && $this->bytes === ''
            && $length > 0
            && $length <= ($this->limit ?? self::MAX_SHORT_BODY_BYTES)
            && !$this->closed
        ) {
            $whole = $this->connection->connection()?->bodyReader()->whole($this->exchange);
            if ($whole !== null) {
                $this->offset = $length;

                return $this->bytes = $whole;
            }
        }
        $contents = $this->read(\PHP_INT_MAX);
        // The first condition is a part of eof(). For most bodies, this condition ends the loop without a slow eof().
        while ($this->dropped + $this->offset !== $this->length && !$this->eof()) {
            $contents .= $this->read(\PHP_INT_MAX);
        }

        return $contents;
    }

    public function read(int $length): string
    {
        if (
            $this->closed
            || !$this->ended
            && $this->offset === \strlen($this->bytes)
            && $this->dropped + $this->offset !== $this->length
        ) {
            $this->receive();
        }
        $piece = substr($this->bytes, $this->offset, $length);
        $this->offset += \strlen($piece);

        return $piece;
    }

    public function eof(): bool
    {
        return $this->offset === \strlen($this->bytes)
            && ($this->dropped + $this->offset === $this->length || $this->ended || $this->closed);
    }

    public function tell(): int
    {
        return $this->dropped + $this->offset;
    }

    /** Returns whether the body can be read again. If its length is unknown, a read may change the result to false. */
    public function isSeekable(): bool
    {
        if ($this->dropped > 0 || $this->closed) {
            return false;
        }

        return ($this->length ?? \strlen($this->bytes)) <= $this->maxKeptBytes();
    }

    /** Changes the read position. Suspends until all bytes before the new position have arrived. */
    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        if (!$this->isSeekable()) {
            throw new \RuntimeException('This body can be read only once, from its beginning to its end');
        }
        $position = $offset + match ($whence) {
            \SEEK_SET => 0,
            \SEEK_CUR => $this->tell(),
            \SEEK_END => $this->getSize() ?? throw new \RuntimeException('The length of this body is unknown'),
            default => throw new \RuntimeException(
                "The argument \$whence must be SEEK_SET, SEEK_CUR or SEEK_END, not {$whence}",
            ),
        };
        $this->offset = max(0, min($position, \strlen($this->bytes)));
        while ($this->tell() < $position && !$this->eof()) {
            $this->read($position - $this->tell());
        }
        $this->tell() === $position || throw new \RuntimeException("The body ends before position {$position}");
    }

    public function isReadable(): bool
    {
        return !$this->closed;
    }

    public function close(): void
    {
        $this->dropped = $this->tell();
        [$this->bytes, $this->offset, $this->closed] = ['', 0, true];
    }

    /** Returns a temporary file with the whole body, or with the unread rest if the body can't be read again. */
    public function detach()
    {
        if ($this->closed) {
            return null;
        }
        $position = $this->isSeekable() ? $this->offset : 0;
        $this->offset -= $position;
        $spool = $this->connection->forms()->spool();
        while (!$this->eof()) {
            $spool->write($this->read(self::READ_BYTES));
        }
        $this->close();
        fseek($spool->file, $position);

        return $spool->file;
    }

    /** Returns metadata. After the whole body was read, the key "trailers" has the fields after the last chunk. */
    public function getMetadata(?string $key = null): mixed
    {
        $metadata = ['trailers' => []];
        $trailers = $this->ended ? $this->connection->connection()?->bodyReader()->trailers($this->exchange) : null;
        foreach (Fields::parse($trailers ?? '') as [$name, $values]) {
            $metadata['trailers'][$name] = $values;
        }

        return $key === null ? $metadata : $metadata[$key] ?? null;
    }

    /**
     * Stores the next piece in {@see $bytes}. Suspends until the piece or the end of the body has arrived.
     *
     * @throws HttpException     when the body is too large or malformed, arrives too slowly or does not fit into memory
     * @throws \RuntimeException when the stream was closed, or the request was cancelled
     * @throws \LogicException   when the request has ended, or another fiber is reading the body
     */
    private function receive(): void
    {
        $this->exchange->released && throw ServerExchange::bodyReleased();
        $this->closed && throw new \RuntimeException('The body was closed');
        if ($this->refusal !== null) {
            throw $this->refusal;
        }
        $connection = $this->connection->connection() ?? throw ClientDisconnectedException::bodyIncomplete();
        $limit = $this->limit ?? $connection->service->options->maxBodyBytes;
        $length = $this->length;
        if ($length > $limit) {
            throw self::tooLarge($limit);
        }
        $piece = $connection->bodyReader()->receive($this->exchange);
        if ($piece === '') {
            $this->ended = true;

            return;
        }
        $received = $this->dropped + \strlen($this->bytes) + \strlen($piece);
        if ($received > $limit) {
            throw $this->refusal = self::tooLarge($limit);
        }
        if (
            $this->dropped === 0
            && ($received <= self::MAX_SHORT_BODY_BYTES || ($length ?? $received) <= $this->maxKeptBytes())
        ) {
            $this->bytes .= $piece;
        } else {
            $this->dropped += \strlen($this->bytes);
            [$this->bytes, $this->offset] = [$piece, 0];
        }
    }

    private function maxKeptBytes(): int
    {
        return $this->connection->forms()->maxKeptBytes($this->exchange->head->field('content-type'));
    }

    private static function tooLarge(int $limit): HttpException
    {
        return new HttpException(413, "The body is larger than {$limit} bytes");
    }
}
