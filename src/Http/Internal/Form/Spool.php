<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;
use Spindle\Internal\UnlinkedFile;
use Spindle\Internal\Warnings;

/** Stores an uploaded file while it arrives: in memory while it is small, then in an unnamed temporary file. */
final class Spool
{
    /** Bytes. A file on disk needs a descriptor, and takes 100 times as long as a few KB in memory. */
    private const MAX_MEMORY_BYTES = 65_536;

    /** @var resource */
    private mixed $file;

    private int $size = 0;
    private bool $onDisk = false;

    /**
     * @param string         $directory for the temporary file
     * @param DiskFiles|null $files     counts files on disk
     */
    public function __construct(private readonly string $directory, private readonly ?DiskFiles $files = null)
    {
        $this->file = $this->open(static fn() => fopen('php://memory', 'w+'));
    }

    /** @throws HttpException */
    public function write(string $bytes): void
    {
        $this->size += \strlen($bytes);
        if ($this->size > self::MAX_MEMORY_BYTES && !$this->onDisk) {
            $this->moveToDisk();
        }
        $this->append($bytes);
    }

    public function size(): int
    {
        return $this->size;
    }

    /** @return resource */
    public function file(): mixed
    {
        return $this->file;
    }

    public function close(): void
    {
        fclose($this->file);
    }

    /** @throws HttpException */
    private function moveToDisk(): void
    {
        $this->files?->check();
        rewind($this->file);
        $bytes = (string) stream_get_contents($this->file);
        $file = $this->open(fn() => UnlinkedFile::open($this->directory));
        $this->files?->add($file);
        $this->close();
        $this->file = $file;
        $this->onDisk = true;
        $this->append($bytes);
    }

    /** @throws HttpException */
    private function append(string $bytes): void
    {
        for ($left = $bytes; $left !== ''; $left = substr($left, $written)) {
            [$written, $warning] = Warnings::of(fn() => fwrite($this->file, $left));
            if ($written === false || $written === 0) {
                throw Refusal::noSpace(UploadException::notKept($this->directory, $warning));
            }
        }
    }

    /**
     * @param \Closure(): (resource|false) $call
     *
     * @return resource
     *
     * @throws HttpException
     */
    private function open(\Closure $call): mixed
    {
        [$file, $warning] = Warnings::of($call);

        return $file !== false ? $file : throw Refusal::noSpace(UploadException::notKept($this->directory, $warning));
    }
}
