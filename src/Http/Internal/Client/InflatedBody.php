<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Client\InvalidResponseException;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Internal\Warnings;

/**
 * A response body that is decompressed while it is read: RFC 1952. A body can be read a second time only if the body is
 * short, or if getContents() has returned the whole body.
 */
final class InflatedBody implements StreamInterface
{
    use KeepsContents;

    /** Compressed bytes per step. Deflate expands at most 1032:1, so a step produces at most about 4 MiB. */
    private const STEP_BYTES = 4096;

    private const TITLE = 'the decompressed body';

    /** First bytes of each gzip member. A gzip body consists of one or more members. */
    private const MAGIC = "\x1f\x8b";

    /** State of the current member; null before the first member, and after the end of each member. */
    private ?\InflateContext $member = null;

    /** Whether the last member has ended, and bytes follow that are no gzip member. Such bytes are ignored. */
    private bool $isComplete = false;
    private bool $hasMember = false;

    /**
     * @param string $coding Content-Encoding of the response
     * @param string $encodedLength Content-Length of the response; '' if the response has none
     */
    public function __construct(
        private readonly ResponseBody $source,
        OutgoingRequest $request,
        private readonly int $maxBodyBytes,
        public readonly string $coding = 'gzip',
        public readonly string $encodedLength = '',
    ) {
        $this->request = new \SensitiveParameterValue($request);
    }

    /**
     * Returns whether a body can be decompressed: gzip is its only coding, and ext-zlib is loaded.
     *
     * @param list<string> $codings values of all Content-Encoding lines of the response
     */
    public static function supports(array $codings): bool
    {
        $applied = array_values(array_diff(Fields::members($codings), ['identity', '']));

        return ($applied === ['gzip'] || $applied === ['x-gzip']) && \extension_loaded('zlib');
    }

    /** @throws InvalidResponseException when the contents are too long, or can't be decompressed */
    public function getContents(): string
    {
        $this->refuseSecondReader();
        while ($this->dropped === 0 && $this->receive(true)) {
            $this->checkLength(\strlen($this->bytes));
        }
        $contents = $this->unreadContents();
        $this->refuseIfClosed();

        return $contents;
    }

    public function read(int $length): string
    {
        $this->refuseSecondReader();
        if ($this->eof()) {
            $this->refuseIfClosed();

            return '';
        }
        $this->source->markUsed(); // because a read of bytes that are already inflated does not read from the source
        $bytes = substr($this->bytes, $this->offset, $length);
        $this->offset += \strlen($bytes);

        return $bytes;
    }

    /** Returns true after {@see close()}, although read() then throws. */
    public function eof(): bool
    {
        while (!$this->isClosed && $this->offset === \strlen($this->bytes)) {
            if (!$this->receive(false)) {
                return true;
            }
        }

        return $this->isClosed;
    }

    public function isSeekable(): bool
    {
        return $this->dropped === 0 && !$this->isClosed && $this->failure === null;
    }

    public function close(): void
    {
        $this->isClosed = true;
        $this->discard();
    }

    /** @throws \Throwable an earlier failure of the body, if there was one */
    private function refuseIfClosed(): void
    {
        if ($this->isClosed) {
            throw $this->failure ?? new \RuntimeException('The body was closed');
        }
    }

    /**
     * @param bool $keeps true to keep all bytes, for getContents(); false to discard bytes after MAX_KEPT_BYTES
     *
     * @return bool false at the end of the body
     */
    private function receive(bool $keeps): bool
    {
        if ($this->failure !== null) {
            throw $this->failure;
        }
        if ($this->isClosed || $this->source->eof()) {
            return false;
        }
        $this->refuseSecondReader();
        $this->isReading = true;
        try {
            $this->step($keeps);
        } finally {
            $this->isReading = false;
        }

        return true;
    }

    private function step(bool $keeps): void
    {
        if (!$keeps) {
            $this->discardLongPart();
        }
        $bytes = $this->source->read(self::STEP_BYTES);
        while ($bytes !== '' && !$this->isComplete) {
            $bytes = $this->inflate($bytes);
        }
        if ($this->member !== null && $this->source->eof()) {
            $this->source->close();
            $this->failure = InvalidResponseException::of($this->request(), 'the compressed body ends too early');
            $this->request()->call->countFailure();
        }
    }

    /** @return string input after the end of the member; '' if the member has not ended */
    private function inflate(string $bytes): string
    {
        if ($this->member === null) {
            $bytes .= $bytes === self::MAGIC[0] ? $this->source->read(self::STEP_BYTES) : '';
            $isMember = str_starts_with($bytes, self::MAGIC);
            if (!$isMember && $this->hasMember) {
                $this->isComplete = true;

                return '';
            }
            if (!$isMember && $bytes !== self::MAGIC[0]) {
                throw $this->fail(InvalidResponseException::of(
                    $this->request(),
                    "the body is not compressed, although its Content-Encoding is {$this->coding}",
                ));
            }
        }
        $member = $this->member ?? inflate_init(\ZLIB_ENCODING_GZIP);
        $before = $this->member === null ? 0 : inflate_get_read_len($this->member);
        $output = $member === false ? false : Warnings::suppressed(static fn() => inflate_add($member, $bytes));
        if ($member === false || $output === false) {
            // zlib has the same error code for wrong data, a wrong checksum and a wrong length.
            throw $this->fail(InvalidResponseException::of(
                $this->request(),
                'the compressed body is corrupt: its data, checksum or length is wrong',
            ));
        }
        $this->bytes .= $output;
        $this->hasMember = true;
        $hasEnded = inflate_get_status($member) === \ZLIB_STREAM_END;
        $this->member = $hasEnded ? null : $member;

        return $hasEnded ? substr($bytes, inflate_get_read_len($member) - $before) : '';
    }

    private function hasKept(): bool
    {
        return $this->isSeekable();
    }

    private function fail(InvalidResponseException $failure): InvalidResponseException
    {
        $this->discard();
        $this->request()->call->countFailure();

        return $this->failure = $failure;
    }

    private function discard(): void
    {
        $this->discardUnread();
        $this->source->close();
    }
}
