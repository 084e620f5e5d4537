<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\IterableStream;
use Symfony\Component\HttpClient\Exception\TransportException;
use Symfony\Component\HttpClient\Response\StreamableInterface;

/**
 * The body of a request for Symfony. After a redirect, the client sends the body again from its beginning. So this
 * object keeps up to MAX_KEPT_BYTES that it has read from a closure, pipe, socket or user-space stream.
 */
final class SymfonyBody
{
    private const READ_BYTES = 16_372; // the value in Symfony's own clients

    private const MAX_KEPT_BYTES = 1 << 20;

    /** @var array<int, true> ids of resources with a suspended read. Until it ends, PHP does not allow a second read */
    private static array $busy = [];

    /** Copy of a resource or a form (an array), made by {@see copyResource()}; null before. */
    private ?TemporaryCopy $copy = null;

    /** Stream of a resource that is seekable, and whose reads can't suspend; null for other bodies. */
    private readonly ?SymfonyFile $file;

    /** Bytes returned by read(), for a request after a redirect; null if too many, or if redirects are not followed. */
    private ?string $kept;

    /** Number of bytes that {@see read()} has returned, whether they are kept or not. */
    private int $readCount = 0;

    private bool $hasEnded = false;

    /** Whether a fiber is in {@see read()}. After a redirect, the upload of the earlier request may still read. */
    private bool $isReading = false;

    private ?\Throwable $failure = null;

    /**
     * @param mixed $body a string, closure or resource, prepared by HttpClientTrait of Symfony
     * @param bool $canBeCopied whether the caller gave a resource or a form (an array), and reading it can't suspend
     * @param bool $isRepeatable whether redirects are followed
     */
    public function __construct(
        #[\SensitiveParameter]
        private mixed $body,
        private readonly bool $canBeCopied,
        bool $isRepeatable,
    ) {
        // If several requests share a seekable resource, each of them seeks to its own position before a read. This is
        // not possible in a user-space stream: its reads can suspend, and PHP does not allow a seek during a read.
        $isSeekable = \is_resource($body)
            && !self::maySuspend($body)
            && stream_get_meta_data($body)['seekable']
            && fseek($body, 0, \SEEK_CUR) === 0;
        $this->file = $isSeekable ? new SymfonyFile($body) : null;
        $this->kept = $isRepeatable ? '' : null;
    }

    /** Returns whether a read may run PHP code that suspends the fiber, such as code of Symfony's `toStream()`. */
    public static function maySuspend(mixed $body): bool
    {
        if ($body instanceof StreamableInterface) {
            return true;
        }
        if (\is_resource($body)) {
            return stream_get_meta_data($body)['stream_type'] === 'user-space';
        }
        $parts = \is_object($body) ? get_object_vars($body) : $body;

        return \is_array($parts) && array_filter($parts, self::maySuspend(...)) !== [];
    }

    public function isEmpty(): bool
    {
        return $this->body === '';
    }

    /**
     * Returns a stream of the whole body, for the first request or for a request that follows a redirect.
     *
     * @param \Closure(int): void $onSent gets the number of bytes of each piece. Its first call, perhaps with 0, means
     *     that the request has a connection
     *
     * @throws TransportException when bytes that an earlier request has read were not kept, or the resource is closed
     */
    public function stream(\Closure $onSent): StreamInterface
    {
        if (\is_resource($this->body) || $this->body instanceof \Closure) {
            if ($this->file !== null) {
                $this->file->onRead = $onSent;

                return $this->file;
            }
            $this->keptFrom(0);

            return new IterableStream($this->pieces($onSent));
        }
        if ($this->isClosed()) {
            throw self::closed();
        }

        return new ReportedText(\is_string($this->body) ? $this->body : '', $onSent);
    }

    /**
     * Moves the resource back to the body's start. Must be called before the caller uses its resource again. A running
     * upload goes on reading the resource, and restores the position of the resource after each read.
     */
    public function release(): void
    {
        $this->file?->release();
    }

    public function isClosed(): bool
    {
        return \gettype($this->body) === 'resource (closed)';
    }

    public static function closed(?\Throwable $previous = null): TransportException
    {
        return self::unreadable('its resource was closed too early. Close it after getStatusCode()', $previous);
    }

    /**
     * Copies those bytes of a resource or form that are still needed. After that, the caller may change or close the
     * resource. Does nothing if a read of the body may suspend.
     *
     * @throws \Throwable when the body can't be read or stored
     */
    public function copyResource(): void
    {
        $resource = \is_resource($this->body) ? $this->body : null;
        $hasFiles = $resource !== null || $this->body instanceof \Closure;
        if ($this->isReading || !$this->canBeCopied || !$hasFiles) {
            return;
        }
        // The metadata of a php://temp or data: stream has no key 'blocked'.
        $isBlocking = $resource === null || (stream_get_meta_data($resource) + ['blocked' => true])['blocked'];
        try {
            if (!$isBlocking) {
                stream_set_blocking($resource, true);
            }
            $this->copy = $this->readAll($this->file?->secondReader());
        } finally {
            if (!$isBlocking) {
                stream_set_blocking($resource, false);
            }
        }
        $this->file?->replace($this->copy->resource);
        [$this->body, $this->hasEnded] = [$this->copy->resource, false];
    }

    private function readAll(?SymfonyFile $file): TemporaryCopy
    {
        $copy = new TemporaryCopy();
        while (!($file?->eof() ?? $this->hasEnded)) {
            $piece = $file?->read(self::READ_BYTES) ?? $this->nextPiece();
            if ($piece === '' && !($file?->eof() ?? $this->hasEnded)) {
                throw self::unreadable('no bytes arrived within the time limit of its resource');
            }
            $copy->add($piece);
        }
        rewind($copy->resource);

        return $copy;
    }

    /**
     * @param \Closure(int): void $onSent
     *
     * @return \Generator<int, string>
     */
    private function pieces(\Closure $onSent): \Generator
    {
        $onSent(0);
        for ($offset = 0;; $offset += \strlen($piece)) {
            $piece = $this->keptFrom($offset);
            if ($piece === '' && !$this->isReading) {
                if ($this->hasEnded) {
                    return;
                }
                $piece = $this->read();
            }
            if ($piece !== '') {
                $onSent(\strlen($piece));
            }
            yield $piece; // after '', the upload tries again later
        }
    }

    /** @return string bytes from $offset that an earlier request has read; '' if there are none */
    private function keptFrom(int $offset): string
    {
        if ($offset < $this->readCount && $this->kept === null) {
            throw new TransportException(
                "The redirect can't be followed: the body can't be sent again, because it is longer than "
                    . self::MAX_KEPT_BYTES . ' bytes. Pass a string or a seekable file, or request the new URL.',
            );
        }

        return substr($this->kept ?? '', $offset, self::READ_BYTES);
    }

    private function read(): string
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        $this->isReading = true;
        try {
            $piece = $this->nextPiece();
        } catch (\Throwable $failure) {
            throw $this->failure = $failure;
        } finally {
            $this->isReading = false;
        }
        $this->readCount += \strlen($piece);
        $this->kept = $this->kept === null || $this->readCount > self::MAX_KEPT_BYTES ? null : $this->kept . $piece;

        return $piece;
    }

    /** @param resource $resource */
    private function readResource(mixed $resource): string
    {
        $id = get_resource_id($resource);
        if (isset(self::$busy[$id])) {
            return ''; // the upload tries again later
        }
        self::$busy[$id] = true;
        try {
            $piece = fread($resource, self::READ_BYTES);
        } finally {
            unset(self::$busy[$id]);
        }
        if ($piece === false) {
            throw self::unreadable('reading its resource failed, or exceeded its time limit');
        }
        $this->hasEnded = feof($resource);

        return $piece;
    }

    /** Returns '' at the end, while a non-blocking resource has no bytes, or while another fiber reads the resource. */
    private function nextPiece(): string
    {
        if ($this->body instanceof \Closure) {
            $piece = ($this->body)(self::READ_BYTES);
            $this->hasEnded = $piece === '';
        } elseif (\is_resource($this->body)) {
            $piece = $this->readResource($this->body);
        } else {
            throw self::closed();
        }

        return \is_string($piece) ? $piece : throw new TransportException(
            'The body callback must return a string, not ' . get_debug_type($piece) . '.',
        );
    }

    public static function unreadable(string $why, ?\Throwable $previous = null): TransportException
    {
        return new TransportException("The body can't be sent: {$why}.", 0, $previous);
    }
}
