<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

/** A stream wrapper that names no type of file, and has no descriptor that an event loop could watch. */
final class UnwatchableStream
{
    public const PROTOCOL = 'unwatchable';

    /** Maximum bytes that one write accepts. */
    public static int $capacity = 3;

    public static string $written = '';

    /** @var list<string> results of the next reads; the stream ends with the last one */
    public static array $reads = ['read'];

    /** @var resource|null set by PHP */
    public $context;

    public function stream_open(): bool
    {
        return true;
    }

    /** @return array{} */
    public function stream_stat(): array
    {
        return [];
    }

    public function stream_read(): string
    {
        return array_shift(self::$reads) ?? '';
    }

    public function stream_eof(): bool
    {
        return self::$reads === [];
    }

    public function stream_write(string $bytes): int
    {
        $accepted = substr($bytes, 0, self::$capacity);
        self::$written .= $accepted;

        return \strlen($accepted);
    }
}
