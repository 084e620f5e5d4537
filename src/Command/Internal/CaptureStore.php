<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\SpoolException;
use Spindle\Internal\UnlinkedFile;

/** Where a pool's captured output is kept: how much of it may be in memory, and the files for the rest. */
final class CaptureStore
{
    /** Of one output, this much stays in memory, in bytes; of all that a pool holds, the second. */
    private const EACH = 1 << 20;
    private const ALL = 64 << 20;

    /**
     * A pool that holds more files takes no more input until results are taken, and has further results share files:
     * descriptors are scarce.
     */
    private const FILES = 64;

    /** Maximum size of a shared file, in bytes. All of its space is in use as long as one of its results is kept. */
    private const SHARED_SIZE = 256 << 20;

    private int $held = 0;
    private int $files = 0;

    /** @var \WeakReference<SharedFile>|null to what results have moved to last, which they keep open */
    private ?\WeakReference $shared = null;

    /** An absolute path, for the launcher and this process may have different working directories. */
    public readonly string $directory;

    /** @param string|null $directory null for the system's own */
    public function __construct(?string $directory)
    {
        $directory ??= sys_get_temp_dir();
        $this->directory = str_starts_with($directory, '/') ? $directory : getcwd() . "/{$directory}";
    }

    public function isFull(): bool
    {
        return $this->held > self::ALL || $this->files > self::FILES;
    }

    /** @return bool false when the output belongs in a file instead */
    public function hold(int $bytes, int $length): bool
    {
        if ($length > self::EACH || $this->held + $bytes > self::ALL) {
            return false;
        }
        $this->held += $bytes;

        return true;
    }

    public function release(int $bytes, bool $file): void
    {
        $this->held -= $bytes;
        $this->files -= $file ? 1 : 0;
    }

    /**
     * @return resource
     *
     * @throws SpoolException
     */
    public function open(): mixed
    {
        $file = $this->create();
        ++$this->files;

        return $file;
    }

    /** Moves complete output from files of its own to one that results share, when there are many files. */
    public function share(Capture ...$captures): void
    {
        if ($this->files <= self::FILES) {
            return;
        }
        try {
            foreach ($captures as $capture) {
                if ($capture->hasOwnFile()) {
                    $capture->moveTo($this->sharedFile());
                }
            }
        } catch (SpoolException) {
            // The disk may be full: the output stays in the file that it has.
        }
    }

    /**
     * @param resource $file
     *
     * @throws SpoolException
     */
    public function write(mixed $file, string $bytes): void
    {
        for ($left = $bytes; $left !== ''; $left = substr($left, $written)) {
            $written = @fwrite($file, $left);
            if ($written === false || $written === 0) {
                throw SpoolException::inDirectory($this->directory);
            }
        }
    }

    /** @throws SpoolException */
    private function sharedFile(): SharedFile
    {
        $shared = $this->shared?->get();
        if ($shared === null || (fstat($shared->stream)['size'] ?? 0) >= self::SHARED_SIZE) {
            $shared = new SharedFile($this->create());
            $this->shared = \WeakReference::create($shared);
        }

        return $shared;
    }

    /**
     * @return resource
     *
     * @throws SpoolException
     */
    private function create(): mixed
    {
        $file = UnlinkedFile::open($this->directory);
        if ($file === false) {
            throw SpoolException::inDirectory($this->directory);
        }
        stream_set_write_buffer($file, 0);

        return $file;
    }
}
