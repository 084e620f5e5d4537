<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/** Counts the open files of a server's uploads. Each file needs a descriptor that a connection could use otherwise. */
final class DiskFiles
{
    private int $openFiles = 0;

    /**
     * @param \Closure(): int  $getLimit returns the maximum number of open files
     * @param \Closure(): void $onFull   called when a file is refused
     */
    public function __construct(private readonly \Closure $getLimit, private readonly \Closure $onFull) {}

    public function count(): int
    {
        return $this->openFiles;
    }

    /** @throws HttpException when the limit is reached */
    public function check(): void
    {
        if ($this->openFiles >= ($this->getLimit)()) {
            ($this->onFull)();
            throw new HttpException(503, 'Too many files are being uploaded at once', ['Retry-After' => '1']);
        }
    }

    /** @param resource $file */
    public function add($file): void
    {
        ++$this->openFiles;
        // PHP destroys the options of a stream when it closes the stream. The destructor then counts down.
        stream_context_set_option($file, 'spindle', 'open', new DiskFile(function (): void {
            --$this->openFiles;
        }));
    }
}
