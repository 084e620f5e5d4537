<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

/** A stream wrapper without options, which has only the methods that reading needs. */
final class EndlessFile
{
    /** @var resource|null set by PHP */
    public $context;

    public function stream_open(): bool
    {
        return true;
    }

    public function stream_read(int $count): string
    {
        return str_repeat('x', $count);
    }

    public function stream_eof(): bool
    {
        return false;
    }

    public function stream_seek(): bool
    {
        return false;
    }

    /** @return array<string, int> */
    public function url_stat(): array
    {
        return [];
    }
}
