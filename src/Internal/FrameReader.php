<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Spindle\Internal\Launcher\LauncherProtocol;

/** Splits bytes of a pipe or socket into frames of {@see LauncherProtocol}. The bytes may arrive in any pieces. */
final class FrameReader
{
    private string $rest = '';

    /** Length at which $rest contains the whole next header or frame. A shorter $rest is not split, to avoid copies. */
    private int $needed = LauncherProtocol::HEADER_BYTES;

    private bool $feeding = false;

    /** Bytes with which each frame must begin, so that foreign bytes are noticed; '' for none. */
    private string $magic = '';

    /**
     * @param int $maxFrameBytes maximum length of a frame; a longer frame is malformed
     * @param int $maxType       largest type of a frame; a frame with a larger type is malformed
     */
    public function __construct(public int $maxFrameBytes = \PHP_INT_MAX, private readonly int $maxType = 0xFF) {}

    /** Requires `$magic` at the beginning of each later frame. The handler may call this method. */
    public function expect(string $magic): void
    {
        $this->magic = $magic;
        $this->needed = \strlen($magic) + LauncherProtocol::HEADER_BYTES;
    }

    /**
     * Adds bytes, and passes each complete frame to the handler, in order. If the handler of an earlier call is
     * suspended, this call only stores the bytes, and the earlier call passes the frames on. If the handler throws, the
     * next call continues with the next frame. After a malformed frame, the reader is unusable.
     *
     * @throws MalformedFrameException when a frame is malformed; all earlier frames were handled
     */
    public function feed(string $bytes, FrameHandler $handler): void
    {
        $this->rest .= $bytes;
        if ($this->feeding) {
            return;
        }
        $this->feeding = true;
        try {
            while (\strlen($this->rest) >= $this->needed) {
                $this->split($handler);
            }
        } finally {
            $this->feeding = false;
        }
    }

    public function isEmpty(): bool
    {
        return $this->rest === '';
    }

    /** Returns how many bytes must still arrive until the incomplete frame, or the next header, is complete. */
    public function missing(): int
    {
        return $this->needed - \strlen($this->rest);
    }

    private function split(FrameHandler $handler): void
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
                $isFrame = ($before === 0 || substr_compare($bytes, $this->magic, $at, $before) === 0)
                    && $header['type'] <= $this->maxType
                    && $header['length'] >= 5
                    && $header['length'] <= $this->maxFrameBytes;
                if (!$isFrame) {
                    throw MalformedFrameException::at($bytes, $at);
                }
                if ($size - $at - $before - 4 < $header['length']) {
                    $this->needed = $before + 4 + $header['length'];
                    break;
                }
                $payload = $at + $before + LauncherProtocol::HEADER_BYTES;
                $at += $before + 4 + $header['length'];
                $handler->onFrame($header['type'], $header['job'], $bytes, $payload, $header['length'] - 5);
            }
        } finally {
            $this->rest = substr($bytes, $at) . $this->rest;
        }
    }
}
