<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Internal\FileSizeLimit;
use Spindle\Internal\Warnings;
use Symfony\Component\HttpClient\Exception\TransportException;

/** A copy of a request body, in memory while it is short, and otherwise in a temporary file. */
final class TemporaryCopy
{
    private const MAX_BYTES_IN_MEMORY = 16_384;

    /** Maximum number of temporary files. Connections need descriptors too, and a process usually has 1024. */
    private const MAX_FILES = 512;

    private static int $fileCount = 0;

    private bool $isFile = false;

    /** @var resource */
    public readonly mixed $resource;

    public function __construct()
    {
        $resource = fopen('php://temp/maxmemory:' . self::MAX_BYTES_IN_MEMORY, 'w+');
        \assert($resource !== false);
        $this->resource = $resource;
    }

    public function __destruct()
    {
        self::$fileCount -= $this->isFile ? 1 : 0;
    }

    /** @throws TransportException when there are too many files, or the bytes can't be written */
    public function add(#[\SensitiveParameter] string $bytes): void
    {
        $end = (int) ftell($this->resource) + \strlen($bytes);
        if (!$this->isFile && $end > self::MAX_BYTES_IN_MEMORY) {
            $this->becomeFile();
        }
        $fits = !$this->isFile || FileSizeLimit::allows($end);
        if (!$fits || Warnings::write($this->resource, $bytes) !== \strlen($bytes)) {
            throw SymfonyBody::unreadable('its temporary copy can\'t be written to ' . sys_get_temp_dir());
        }
    }

    private function becomeFile(): void
    {
        if (self::$fileCount >= self::MAX_FILES) {
            $count = self::MAX_FILES;

            throw SymfonyBody::unreadable(
                "{$count} temporary copies of other bodies wait to be sent. Before you destroy a response, call its"
                    . ' getStatusCode(), which waits for the head of the response',
            );
        }
        ++self::$fileCount;
        $this->isFile = true;
    }
}
