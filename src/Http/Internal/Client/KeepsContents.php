<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Internal\Message\ReadOnlyStream;
use Spindle\Internal\FreeMemory;

/**
 * A response body that keeps its bytes while it is short, or while getContents() reads it. Limits the length of the
 * contents that are returned as one string.
 *
 * @phpstan-require-implements \Psr\Http\Message\StreamInterface
 */
trait KeepsContents
{
    use ReadOnlyStream;

    /** Once this many bytes are kept, read() discards them before it receives more, so the body can't be read again. */
    private const MAX_KEPT_BYTES = 65_536;

    private const READ_BYTES = 65_536;

    /** Bytes of the body that have arrived: all bytes, or only the last piece if earlier bytes were discarded. */
    private string $bytes = '';
    private int $offset = 0;

    private int $dropped = 0;

    private bool $isClosed = false;

    /** Whether a fiber waits for bytes. During this wait, other fibers can't read the body. */
    private bool $isReading = false;

    /** Failure of the body, thrown by each later read. But read() first returns the bytes that are left in $bytes. */
    private ?\Throwable $failure = null;

    /** The {@see OutgoingRequest}. The wrapper hides the request from var_export() and from array casts. */
    private readonly \SensitiveParameterValue $request;

    public function __toString(): string
    {
        $this->refuseSecondReader();
        if ($this->dropped === 0) {
            $this->offset = 0;
        }

        return $this->getContents();
    }

    public function seek(int $offset, int $whence = \SEEK_SET): void
    {
        $this->refuseSecondReader();
        $target = match ($whence) {
            \SEEK_SET => $offset,
            \SEEK_CUR => $this->offset + $offset,
            default => null,
        };
        if (!$this->hasKept() || $target === null || $target < 0 || $target > \strlen($this->bytes)) {
            throw new \RuntimeException('This body can only be rewound, and only if it is short');
        }
        $this->offset = $target;
    }

    public function tell(): int
    {
        return $this->dropped + $this->offset;
    }

    public function getMetadata(?string $key = null): mixed
    {
        return $this->request()->metadata($key);
    }

    public function isReadable(): bool
    {
        return !$this->isClosed;
    }

    private function request(): OutgoingRequest
    {
        /** @var OutgoingRequest */
        return $this->request->getValue();
    }

    private function refuseSecondReader(): void
    {
        if ($this->isReading) {
            throw new \LogicException('Another fiber is reading this body');
        }
    }

    /** @throws InvalidResponseException when the contents exceed `RequestOptions::$maxBodyBytes` or the free memory */
    private function unreadContents(): string
    {
        $contents = $this->offset === 0 ? $this->bytes : substr($this->bytes, $this->offset);
        $this->offset = \strlen($this->bytes);
        while (!$this->eof()) {
            $contents .= $this->read(self::READ_BYTES);
            $this->checkLength(\strlen($contents));
        }

        return \strlen($contents) > $this->maxBodyBytes ? throw $this->fail($this->tooLong()) : $contents;
    }

    /** Throws if contents of this length exceed the limit, or if there is too little memory to copy and extend them. */
    private function checkLength(int $length): void
    {
        if ($length > $this->maxBodyBytes) {
            throw $this->fail($this->tooLong());
        }
        if ($length > self::READ_BYTES && !(new FreeMemory())->allowsPart($length + self::READ_BYTES, $length)) {
            throw $this->fail(InvalidResponseException::outOfMemory($this->request(), $length));
        }
    }

    private function tooLong(): InvalidResponseException
    {
        return InvalidResponseException::of(
            $this->request(),
            self::TITLE . " is longer than {$this->maxBodyBytes} bytes (RequestOptions::\$maxBodyBytes)",
        );
    }

    /** Discards the kept bytes once MAX_KEPT_BYTES of the body have arrived. */
    private function discardLongPart(): void
    {
        if ($this->dropped + \strlen($this->bytes) >= self::MAX_KEPT_BYTES) {
            $this->dropped += \strlen($this->bytes);
            [$this->bytes, $this->offset] = ['', 0];
        }
    }

    private function discardUnread(): void
    {
        $this->dropped += $this->offset;
        [$this->bytes, $this->offset] = ['', 0];
    }

    abstract private function fail(InvalidResponseException $failure): \Throwable;

    abstract private function hasKept(): bool;
}
