<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Command\StreamException;
use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\FreeMemory;
use Spindle\Internal\UnlinkedFile;

/** Counts the memory and the files of a pool's captured output, and opens the files. */
final class CaptureStore
{
    private const MAX_OUTPUT_MEMORY_BYTES = 1 << 20;

    /** Maximum bytes in memory of a pool's outputs that are not tiny. A quarter of memory_limit is another maximum. */
    private const MAX_POOL_MEMORY_BYTES = 64 << 20;

    /** An output of this length never needs a file, because the objects of its result use more memory. */
    private const TINY_BYTES = 256;

    /** With more files than this, the lookahead is 0, and outputs move to shared files, to save descriptors. */
    private const FILES_THRESHOLD = 64;

    /** A shared file of this size gets no more outputs. PHP closes the file when no result refers to it any more. */
    private const MAX_SHARED_FILE_BYTES = 256 << 20;

    private readonly int $maxMemoryBytes;

    private int $memoryBytes = 0;

    private int $fileCount = 0;

    /** @var \WeakReference<SharedFile>|null the newest shared file; only results keep it open */
    private ?\WeakReference $shared = null;

    /**
     * Directory of the files. Launchers have another working directory, and remove files that remain if this process is
     * killed. So the path is absolute, unless the working directory of this process was removed.
     */
    public readonly string $directory;

    /** @param string|null $directory null for the system's temporary directory */
    public function __construct(?string $directory)
    {
        $directory ??= sys_get_temp_dir();
        $current = str_starts_with($directory, '/') ? false : getcwd();
        $this->directory = $current === false ? $directory : "{$current}/{$directory}";
        $this->maxMemoryBytes = FreeMemory::quarterOfLimit(self::MAX_POOL_MEMORY_BYTES);
    }

    /** Returns whether more than FILES_THRESHOLD outputs have their own files. If so, the lookahead is 0. */
    public function isFull(): bool
    {
        return $this->fileCount > self::FILES_THRESHOLD;
    }

    /** Reserves `$bytes` of memory for an output of then `$length` bytes. Returns false if the output needs a file. */
    public function reserveMemory(int $bytes, int $length): bool
    {
        $isFull = $this->memoryBytes + $bytes > $this->maxMemoryBytes && $length > self::TINY_BYTES;
        if ($isFull || $length > self::MAX_OUTPUT_MEMORY_BYTES) {
            return false;
        }
        $this->memoryBytes += $bytes;

        return true;
    }

    /** Subtracts `$bytes` from the memory in use and, if `$hadFile`, one from the number of files. */
    public function release(int $bytes, bool $hadFile): void
    {
        $this->memoryBytes -= $bytes;
        $this->fileCount -= $hadFile ? 1 : 0;
    }

    /**
     * @return resource
     *
     * @throws StreamException when the file can't be created
     */
    public function open(): mixed
    {
        $file = $this->create();
        ++$this->fileCount;

        return $file;
    }

    /** Moves complete outputs to a shared file if the pool has too many files. */
    public function share(Capture ...$captures): void
    {
        if ($this->fileCount <= self::FILES_THRESHOLD) {
            return;
        }
        try {
            foreach ($captures as $capture) {
                if ($capture->hasOwnFile()) {
                    $capture->moveTo($this->sharedFile());
                }
            }
        } catch (StreamException) {
            // The disk may be full. The output stays in its own file.
        }
    }

    /**
     * @param resource $file
     *
     * @throws StreamException when the disk is full, for example
     */
    public function write(mixed $file, string $bytes): void
    {
        for ($left = $bytes; $left !== ''; $left = substr($left, $written)) {
            $written = FileSizeLimit::write($file, $left);
            if ($written === false || $written === 0) {
                throw StreamException::inDirectory($this->directory);
            }
        }
    }

    /** @throws StreamException when a new shared file is necessary, and can't be created */
    private function sharedFile(): SharedFile
    {
        $shared = $this->shared?->get();
        if ($shared === null || (fstat($shared->stream)['size'] ?? 0) >= self::MAX_SHARED_FILE_BYTES) {
            $shared = new SharedFile($this->create());
            $this->shared = \WeakReference::create($shared);
        }

        return $shared;
    }

    /** @return resource */
    private function create(): mixed
    {
        $file = UnlinkedFile::open($this->directory);
        if ($file === false) {
            throw StreamException::inDirectory($this->directory);
        }
        stream_set_write_buffer($file, 0);

        return $file;
    }
}
