<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\SpoolException;

/**
 * What a command wrote to one of its outputs: in memory while it is small, else in an unlinked temporary file.
 */
final class Capture
{
    private const PIECE = 1 << 18;

    private string $bytes = '';

    /** @var resource|null all of it, once it is a file */
    private mixed $file = null;

    /** The file once it is one that others share, and where in it this begins. */
    private ?SharedFile $shared = null;
    private int $start = 0;

    private int $held = 0;
    private int $length = 0;

    public function __construct(private CaptureStore $store) {}

    public function __destruct()
    {
        $ownsFile = $this->file !== null && $this->shared === null;
        if ($this->held !== 0 || $ownsFile) {
            $this->store->release($this->held, $ownsFile);
        }
    }

    /** @return array{string} the output itself, for neither a file nor the accounts of a pool leave their process */
    public function __serialize(): array
    {
        return [$this->toString()];
    }

    /** @param array{string} $data */
    public function __unserialize(array $data): void
    {
        $this->store = new CaptureStore(null);
        $this->finish($data[0]);
    }

    /**
     * The last piece of a command's output, which mostly is all of it. It is not counted against the store's limit,
     * for it is no larger than the launcher's piece.
     *
     * @throws SpoolException
     */
    public function finish(string $bytes): void
    {
        if ($this->length === 0) {
            $this->bytes = $bytes;
            $this->length = \strlen($bytes);
        } elseif ($bytes !== '') {
            $this->append($bytes);
        }
    }

    /** @throws SpoolException when a file is needed and can't be written; what is there stays */
    public function append(string $bytes): void
    {
        $size = \strlen($bytes);
        if ($this->file === null && !$this->store->hold($size, \strlen($this->bytes) + $size)) {
            $this->spill();
        }
        if ($this->file === null) {
            $this->bytes .= $bytes;
            $this->held += $size;
        } else {
            $this->store->write($this->file, $bytes);
        }
        $this->length += $size;
    }

    public function hasOwnFile(): bool
    {
        return $this->file !== null && $this->shared === null;
    }

    /**
     * Moves its file's content to the end of one that several share, so that it needs no descriptor of its own. Nothing
     * can be appended afterwards.
     *
     * @throws SpoolException when that file can't be written; its own then stays
     */
    public function moveTo(SharedFile $shared): void
    {
        if ($this->file === null || $this->shared !== null) {
            return;
        }
        fseek($shared->stream, 0, \SEEK_END);
        $start = (int) ftell($shared->stream);
        $at = 0;
        while (($bytes = (string) stream_get_contents($this->file, self::PIECE, $at)) !== '') {
            $this->store->write($shared->stream, $bytes);
            $at += \strlen($bytes);
        }
        $this->shared = $shared;
        $this->file = $shared->stream;
        $this->start = $start;
        $this->length = $at;
        $this->store->release(0, true);
    }

    public function length(): int
    {
        return $this->length;
    }

    public function toString(): string
    {
        if ($this->file === null) {
            return $this->bytes;
        }

        return $this->shared === null
            ? (string) stream_get_contents($this->file, null, 0)
            : (string) stream_get_contents($this->file, $this->length, $this->start);
    }

    /** @return resource */
    public function toStream(): mixed
    {
        if ($this->file !== null) {
            return $this->shared === null
                ? CaptureStream::over($this->file)
                : CaptureStream::over($this->file, $this->start, $this->length);
        }
        $stream = fopen('php://memory', 'w+');
        \assert($stream !== false);
        fwrite($stream, $this->bytes);
        rewind($stream);

        return $stream;
    }

    private function spill(): void
    {
        $file = $this->store->open();
        try {
            $this->store->write($file, $this->bytes);
        } catch (SpoolException $failed) {
            $this->store->release(0, true);

            throw $failed;
        }
        $this->file = $file;
        $this->store->release($this->held, false);
        $this->bytes = '';
        $this->held = 0;
    }
}
