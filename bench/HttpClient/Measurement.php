<?php

declare(strict_types=1);

namespace Spindle\Bench\HttpClient;

/** A measurement of an HTTP client. */
enum Measurement: string
{
    case Get = 'get';
    case Upstream = 'upstream';
    case Events = 'events';
    case Download = 'download';
    case Upload = 'upload';

    public function title(int $fibers): string
    {
        return match ($this) {
            self::Get => "GET of 1 KB over kept connections, {$fibers} at a time",
            self::Upstream => 'A handler that makes ten calls of 100 ms side by side',
            self::Events => 'Open streams of server-sent events, memory of each',
            self::Download => 'A large body into a file',
            self::Upload => 'A large body from a file',
        };
    }

    public function unit(): string
    {
        return match ($this) {
            self::Get => 'requests/s',
            self::Upstream => 'ms',
            self::Events => 'KB',
            self::Download, self::Upload => 'MB/s',
        };
    }

    public function decimals(): int
    {
        return $this === self::Upstream || $this === self::Events ? 1 : 0;
    }
}
