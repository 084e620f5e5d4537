<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\IterableStream;
use Symfony\Component\HttpClient\Exception\TransportException;

/**
 * The body of a request for Symfony. After a redirect, it is sent again from its beginning. For that, the bytes of a
 * closure, pipe or socket are kept up to MAX_KEPT_BYTES.
 */
final class SymfonyBody
{
    private const READ_BYTES = 16_372; // the value in Symfony's own clients

    private const MAX_KEPT_BYTES = 1 << 20;

    /** Stream of a resource. Its destructor would close the resource of the caller, so {@see end()} detaches it. */
    private ?StreamInterface $stream = null;

    /** Bytes that were read from a closure, pipe or socket; null if they are not kept. */
    private ?string $kept;

    /** Number of bytes that were read from a closure, pipe or socket. */
    private int $readCount = 0;

    private bool $hasEnded = false;

    /** Whether a fiber is in the closure. It can be the upload of a request that was answered with a redirect. */
    private bool $isReading = false;

    /** Exception that each further read throws. */
    private ?\Throwable $failure = null;

    /**
     * @param mixed $body a string, closure or resource, prepared by HttpClientTrait of Symfony
     * @param bool $isRepeatable whether redirects are followed
     * @param \Closure(int): void $onSent gets the number of bytes of each piece of a closure, pipe or socket
     */
    public function __construct(
        private readonly mixed $body,
        bool $isRepeatable,
        private readonly \Closure $onSent,
    ) {
        $this->kept = $isRepeatable ? '' : null;
    }

    /**
     * Returns the whole body for the next request.
     *
     * @throws TransportException when bytes that an earlier request has read were not kept
     */
    public function begin(): string|StreamInterface
    {
        if (\is_resource($this->body)) {
            $this->stream ??= Stream::create($this->body);
            if ($this->stream->isSeekable()) {
                return $this->stream; // HttpClient rewinds it
            }
        } elseif (!$this->body instanceof \Closure) {
            return \is_string($this->body) ? $this->body : '';
        }
        $this->keptFrom(0);

        return new IterableStream($this->pieces());
    }

    /** Releases the resource without closing it. */
    public function end(): void
    {
        $this->stream?->detach();
    }

    /** @return \Generator<int, string> */
    private function pieces(): \Generator
    {
        for ($offset = 0;; $offset += \strlen($piece)) {
            $piece = $this->keptFrom($offset);
            if ($piece === '' && !$this->isReading) {
                if ($this->hasEnded) {
                    return;
                }
                $piece = $this->read();
            }
            if ($piece !== '') {
                ($this->onSent)(\strlen($piece));
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
                    . self::MAX_KEPT_BYTES . ' bytes. Pass a string or a seekable file, or the URL after the redirect.',
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

    /** Returns '' at the end, and also if a resource that does not block has no bytes. */
    private function nextPiece(): string
    {
        if ($this->body instanceof \Closure) {
            $piece = ($this->body)(self::READ_BYTES);
            $this->hasEnded = $piece === '';
        } else {
            $piece = $this->stream?->read(self::READ_BYTES);
            $this->hasEnded = $this->stream?->eof() ?? true;
        }

        return \is_string($piece) ? $piece : throw new TransportException(
            'The body callback must return a string, not ' . get_debug_type($piece) . '.',
        );
    }
}
