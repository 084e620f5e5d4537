<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\SpoolException;
use Spindle\Internal\UnlinkedFile;
use Spindle\Internal\Warnings;

/** Storage of a pool's captured output: limits for the memory, and files for the rest. */
final class CaptureStore
{
    /** Maximum bytes in memory, of one output and of all outputs of a pool. */
    private const MAX_OUTPUT_MEMORY_BYTES = 1 << 20;
    private const MAX_POOL_MEMORY_BYTES = 64 << 20;

    /** Files per pool, after which it pulls no input ahead and moves results to shared files, to save descriptors. */
    private const FILES_THRESHOLD = 64;

    /** Maximum size of a shared file, in bytes. All of its space is in use as long as one of its results is kept. */
    private const MAX_SHARED_FILE_BYTES = 256 << 20;

    private int $memoryBytes = 0;
    private int $files = 0;

    /** @var \WeakReference<SharedFile>|null the file that output was moved to last; the results keep it open */
    private ?\WeakReference $shared = null;

    /** An absolute path, because the launcher and this process may have different working directories. */
    public readonly string $directory;

    /** @param string|null $directory null for the system's own */
    public function __construct(?string $directory)
    {
        $directory ??= sys_get_temp_dir();
        $this->directory = str_starts_with($directory, '/') ? $directory : getcwd() . "/{$directory}";
    }

    public function isFull(): bool
    {
        return $this->memoryBytes > self::MAX_POOL_MEMORY_BYTES || $this->files > self::FILES_THRESHOLD;
    }

    /** @return bool false when the output must go to a file */
    public function reserveMemory(int $bytes, int $length): bool
    {
        if ($length > self::MAX_OUTPUT_MEMORY_BYTES || $this->memoryBytes + $bytes > self::MAX_POOL_MEMORY_BYTES) {
            return false;
        }
        $this->memoryBytes += $bytes;

        return true;
    }

    public function release(int $bytes, bool $file): void
    {
        $this->memoryBytes -= $bytes;
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

    /** Moves complete outputs to a shared file, if the pool has too many files. */
    public function share(Capture ...$captures): void
    {
        if ($this->files <= self::FILES_THRESHOLD) {
            return;
        }
        try {
            foreach ($captures as $capture) {
                if ($capture->hasOwnFile()) {
                    $capture->moveTo($this->sharedFile());
                }
            }
        } catch (SpoolException) {
            // The disk may be full. The output stays in its own file.
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
            $written = Warnings::write($file, $left);
            if ($written === false || $written === 0) {
                throw SpoolException::inDirectory($this->directory);
            }
        }
    }

    /** @throws SpoolException */
    private function sharedFile(): SharedFile
    {
        $shared = $this->shared?->get();
        if ($shared === null || (fstat($shared->stream)['size'] ?? 0) >= self::MAX_SHARED_FILE_BYTES) {
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
