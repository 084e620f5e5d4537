<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Psr\Http\Message\StreamInterface;
use Psr\Http\Message\UploadedFileInterface;
use Spindle\Http\Internal\Message\NotSerializable;
use Spindle\Internal\Async\LoopTurn;
use Spindle\Internal\Warnings;

/**
 * A file uploaded with a form. The file has no path, and is deleted after the request unless moveTo() was called.
 *
 * The client chooses the name and the media type. The name has no slash, backslash or control character except a tab,
 * but may be "..". Do not use the name in a path.
 */
final class UploadedFile implements UploadedFileInterface
{
    use NotSerializable;

    /** Maximum bytes that moveTo() copies in one turn of the event loop, so that other fibers can run. */
    private const MAX_BYTES_PER_TURN = 1 << 20;

    private ?UploadStream $stream = null;

    private bool $released = false;

    /**
     * @param resource|null $file  seekable stream, which release() closes; null when there is no file
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
     * Returns the same stream each time, at its beginning.
     *
     * @throws UploadException when no file exists, the file was moved, its stream was closed, or the request has ended
     */
    public function getStream(): StreamInterface
    {
        rewind($this->fileOrThrow());

        return $this->stream ??= new UploadStream($this->fileOrThrow(), $this->size);
    }

    /**
     * Copies the file into the target's directory, then renames the copy, so that the target is never incomplete.
     * Replaces an existing target. Other fibers can run during a long copy. The request's end does not stop the copy.
     *
     * @throws \InvalidArgumentException when the path is invalid
     * @throws UploadException when no file exists, the file was moved, its stream was closed, the request has ended, or
     *     the target can't be written. After a failed write, no copy is left in the directory, and the call can be
     *     repeated
     */
    public function moveTo(string $targetPath): void
    {
        if ($targetPath === '' || str_contains($targetPath, "\0")) {
            throw new \InvalidArgumentException('The target path of an upload must not be empty or contain a NUL byte');
        }
        $file = $this->fileOrThrow();
        $temporaryPath = \dirname($targetPath) . '/.spindle-upload-' . bin2hex(random_bytes(8));
        $this->file = null;
        try {
            $this->copy($file, $temporaryPath, $targetPath);
            self::callOrThrow(static fn() => rename($temporaryPath, $targetPath), $targetPath);
            $this->stream = null;
        } catch (\Throwable $exception) {
            $this->file = $file;
            $this->released ? $this->release() : null; // the request has ended during the copy
            throw $exception;
        } finally {
            Warnings::of(static fn() => unlink($temporaryPath));
        }
    }

    /** Closes the file at the end of the request, unless it was moved, or its stream was closed or detached. */
    public function release(): void
    {
        $this->released = true;
        if ($this->file !== null) { // null while moveTo() runs, after a move or release, and after a failed upload
            $this->stream === null ? fclose($this->file) : $this->stream->release();
            $this->file = $this->stream = null;
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

    /** Returns the name after the last slash or backslash, as in $_FILES; null if it is empty or was not sent. */
    public function getClientFilename(): ?string
    {
        $parts = explode('/', strtr($this->clientFilename ?? '', '\\', '/'));
        $name = $parts[\count($parts) - 1];

        return $name === '' ? null : $name;
    }

    /** Returns the media type as the client sent it, without parameters; null when the client sent none. */
    public function getClientMediaType(): ?string
    {
        return $this->clientMediaType;
    }

    /** @return resource */
    private function fileOrThrow(): mixed
    {
        if ($this->error !== \UPLOAD_ERR_OK) {
            throw UploadException::notUploaded($this->error);
        }
        if ($this->file === null) {
            throw $this->released ? UploadException::requestEnded() : UploadException::alreadyMoved();
        }

        return \is_resource($this->file) ? $this->file : throw UploadException::closed();
    }

    /**
     * Copies the file. Seeks before each step, because other fibers can read the stream between two steps.
     *
     * @param resource $from
     */
    private function copy(mixed $from, string $path, string $targetPath): void
    {
        $to = self::callOrThrow(static fn() => fopen($path, 'x'), $targetPath);
        try {
            for ($copied = 0; $copied < $this->size; $copied += $bytes) {
                if ($copied > 0) {
                    LoopTurn::await();
                    \is_resource($from) || throw UploadException::closed();
                }
                $length = min(self::MAX_BYTES_PER_TURN, $this->size - $copied);
                $bytes = self::callOrThrow(
                    static fn() => fseek($from, $copied) === 0 ? stream_copy_to_stream($from, $to, $length) : false,
                    $targetPath,
                );
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
     * @throws UploadException when the call fails or copies nothing
     */
    private static function callOrThrow(\Closure $call, string $targetPath): mixed
    {
        [$result, $warning] = Warnings::of($call);
        if ($result === false || $result === 0) {
            throw UploadException::notMoved($targetPath, $warning);
        }

        return $result;
    }
}
