<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Nyholm\Psr7\Stream;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Internal\Warnings;

use function Amp\delay;

/**
 * A file that came with a form. It has no name in any file system: unless it is moved, it is gone with this object and its stream.
 *
 * The name and the media type are the client's claims. The name has no slash or backslash, but may be "..", or hold any other
 * byte but control characters: do not make a path of it.
 */
final class UploadedFile implements UploadedFileInterface
{
    /** Copied without a break, in bytes; then the event loop turns. */
    private const CHUNK = 1 << 20;

    private ?StreamInterface $stream = null;

    /**
     * @param resource|null $file  seekable, and closed with this object; null when there is none
     * @param int           $error one of UPLOAD_ERR_*
     */
    public function __construct(
        private mixed $file,
        private readonly int $size,
        private readonly int $error = \UPLOAD_ERR_OK,
        private readonly ?string $clientFilename = null,
        private readonly ?string $clientMediaType = null,
    ) {}

    /**
     * The same stream each time, at its beginning.
     *
     * @throws UploadException when there is no file, it was moved, or its stream was closed
     */
    public function getStream(): StreamInterface
    {
        rewind($this->open());

        return $this->stream ??= Stream::create($this->open());
    }

    /**
     * Whoever looks at the path sees no file or all of it: the file is copied beside it, then renamed. A file that is there
     * is replaced. The fiber may suspend in between, so that a large file does not hold up others.
     *
     * @throws \InvalidArgumentException when the path is none
     * @throws UploadException           when there is no file, it was moved, its stream was closed, or it can't be written
     *                                   there; nothing is left at the path's directory then, and it can be tried again
     */
    public function moveTo(string $targetPath): void
    {
        if ($targetPath === '' || str_contains($targetPath, "\0")) {
            throw new \InvalidArgumentException('An uploaded file can only be moved to a path');
        }
        $file = $this->open();
        $beside = \dirname($targetPath) . '/.spindle-upload-' . bin2hex(random_bytes(8));
        $this->file = null;
        try {
            $this->copy($file, $beside, $targetPath);
            self::succeed(static fn() => rename($beside, $targetPath), $targetPath);
            $this->stream = null;
        } catch (UploadException $exception) {
            $this->file = $file;
            throw $exception;
        } finally {
            Warnings::of(static fn() => unlink($beside));
        }
    }

    public function getSize(): int
    {
        return $this->size;
    }

    public function getError(): int
    {
        return $this->error;
    }

    /** Returns the name behind the last slash or backslash, as $_FILES has it; null when there is none. */
    public function getClientFilename(): ?string
    {
        $parts = explode('/', strtr($this->clientFilename ?? '', '\\', '/'));
        $name = $parts[\count($parts) - 1];

        return $name === '' ? null : $name;
    }

    /** Returns the type as it was sent, without parameters; null when none was. */
    public function getClientMediaType(): ?string
    {
        return $this->clientMediaType;
    }

    /**
     * @return resource
     *
     * @throws UploadException
     */
    private function open(): mixed
    {
        if ($this->error !== \UPLOAD_ERR_OK) {
            throw UploadException::notUploaded($this->error);
        }
        if ($this->file === null) {
            throw UploadException::alreadyMoved();
        }

        return \is_resource($this->file) ? $this->file : throw UploadException::closed();
    }

    /**
     * Whoever reads the stream meanwhile may move its position.
     *
     * @param resource $from
     *
     * @throws UploadException
     */
    private function copy(mixed $from, string $path, string $targetPath): void
    {
        $to = self::succeed(static fn() => fopen($path, 'x'), $targetPath);
        try {
            for ($copied = 0; $copied < $this->size; $copied += $bytes) {
                if ($copied > 0) {
                    delay(0);
                }
                $length = min(self::CHUNK, $this->size - $copied);
                $bytes = self::succeed(static fn() => fseek($from, $copied) === 0 ? stream_copy_to_stream($from, $to, $length) : false, $targetPath);
            }
        } finally {
            fclose($to);
        }
    }

    /**
     * @template T
     *
     * @param \Closure(): (T|false) $call
     *
     * @return T
     *
     * @throws UploadException when it failed, or did nothing
     */
    private static function succeed(\Closure $call, string $targetPath): mixed
    {
        [$result, $warning] = Warnings::of($call);
        if ($result === false || $result === 0) {
            throw UploadException::notMoved($targetPath, $warning);
        }

        return $result;
    }
}
