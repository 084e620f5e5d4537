<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Form;

use Spindle\Http\HttpException;

/** Counts the open files of a server's uploads. Each needs a descriptor, which no connection can use then. */
final class DiskFiles
{
    private int $open = 0;

    /**
     * @param \Closure(): int  $limit
     * @param \Closure(): void $onFull  called when a file is refused
     */
    public function __construct(private readonly \Closure $limit, private readonly \Closure $onFull) {}

    public function count(): int
    {
        return $this->open;
    }

    /** @throws HttpException when the limit is reached */
    public function check(): void
    {
        if ($this->open >= ($this->limit)()) {
            ($this->onFull)();
            throw new HttpException(503, 'Too many files are being uploaded at once', ['Retry-After' => '1']);
        }
    }

    /** @param resource $file */
    public function add($file): void
    {
        ++$this->open;
        // PHP destroys the options of a stream when it closes the stream.
        stream_context_set_option($file, 'spindle', 'open', new DiskFile(function (): void {
            --$this->open;
        }));
    }
}
