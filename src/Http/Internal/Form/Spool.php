<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;
use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\UnlinkedFile;
use Spindle\Internal\Warnings;

/** Stores an uploaded file or a body while it arrives: in memory while it is small, then in an unlinked file. */
final class Spool
{
    /** Maximum size of a file in memory, in bytes. Storing a few KB on disk takes 100 times as long as in memory. */
    private const MAX_MEMORY_BYTES = 65_536;

    /** @var resource */
    public mixed $file;

    public int $size = 0;
    private bool $onDisk = false;

    /** @throws HttpException */
    public function __construct(private readonly string $directory, private readonly ?DiskFiles $files = null)
    {
        [$file, $warning] = Warnings::of(static fn() => fopen('php://memory', 'w+'));
        $this->file = $file !== false ? $file : throw $this->noSpace($warning);
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

    public function close(): void
    {
        fclose($this->file);
    }

    private function moveToDisk(): void
    {
        $this->files?->check();
        rewind($this->file);
        $bytes = (string) stream_get_contents($this->file);
        $file = UnlinkedFile::open($this->directory);
        if ($file === false) {
            throw $this->noSpace(error_get_last()['message'] ?? '');
        }
        $this->files?->add($file);
        $this->close();
        $this->file = $file;
        $this->onDisk = true;
        $this->append($bytes);
    }

    private function append(string $bytes): void
    {
        for ($remaining = $bytes; $remaining !== ''; $remaining = substr($remaining, $written)) {
            error_clear_last();
            $written = FileSizeLimit::write($this->file, $remaining);
            if ($written === false || $written === 0) {
                throw $this->noSpace(error_get_last()['message'] ?? '');
            }
        }
    }

    private function noSpace(string $warning): HttpException
    {
        return BodyErrors::noSpace(UploadException::notStored($this->directory, $warning));
    }
}
