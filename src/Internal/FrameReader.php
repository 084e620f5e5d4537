<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\LauncherProtocol;

/** Splits the bytes of a pipe into the frames of {@see LauncherProtocol}, however the bytes arrive. */
final class FrameReader
{
    /** Bytes after the last complete frame. */
    private string $rest = '';

    /** Minimum length of the rest before it is split, so that a long frame is not copied with each piece. */
    private int $needed = LauncherProtocol::HEADER_BYTES;

    private bool $feeding = false;
    private string $magic = '';

    /**
     * @param \Closure(int, int, string, int, int): void $frame   type, job, and payload: bytes, offset, length
     * @param int $maxFrameBytes maximum length; a longer frame is malformed
     */
    public function __construct(private readonly \Closure $frame, public int $maxFrameBytes = \PHP_INT_MAX) {}

    /** Requires these bytes before the length of each later frame. The callback may call this for the next frames. */
    public function expect(string $magic): void
    {
        $this->magic = $magic;
        $this->needed = \strlen($magic) + LauncherProtocol::HEADER_BYTES;
    }

    /**
     * Passes on complete frames in order. Bytes fed while a callback suspends wait for it. After a callback has thrown,
     * the next call passes on the frames behind.
     *
     * @throws MalformedFrameException after the valid frames; the bytes that follow can't be split, so feed no more
     */
    public function feed(string $bytes): void
    {
        $this->rest .= $bytes;
        if ($this->feeding) {
            return;
        }
        $this->feeding = true;
        try {
            while (\strlen($this->rest) >= $this->needed) {
                $this->split();
            }
        } finally {
            $this->feeding = false;
        }
    }

    /** Number of bytes that the incomplete frame needs, or the next header. */
    public function missing(): int
    {
        return $this->needed - \strlen($this->rest);
    }

    private function split(): void
    {
        $bytes = $this->rest;
        $this->rest = '';
        $this->needed = \strlen($this->magic) + LauncherProtocol::HEADER_BYTES;
        $at = 0;
        $size = \strlen($bytes);
        try {
            while ($size - $at >= $this->needed) {
                $before = \strlen($this->magic);
                /** @var array{length: int, type: int, job: int} $header */
                $header = unpack('Vlength/Ctype/Vjob', $bytes, $at + $before);
                $isFrame = $before === 0 || substr_compare($bytes, $this->magic, $at, $before) === 0;
                if (!$isFrame || $header['length'] < 5 || $header['length'] > $this->maxFrameBytes) {
                    throw MalformedFrameException::at($bytes, $at);
                }
                if ($size - $at - $before - 4 < $header['length']) {
                    $this->needed = $before + 4 + $header['length'];
                    break;
                }
                $payload = $at + $before + LauncherProtocol::HEADER_BYTES;
                $at += $before + 4 + $header['length'];
                ($this->frame)($header['type'], $header['job'], $bytes, $payload, $header['length'] - 5);
            }
        } finally {
            $this->rest = substr($bytes, $at) . $this->rest;
        }
    }
}
