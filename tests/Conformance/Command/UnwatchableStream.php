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

    /** @var resource|null set by PHP */
    public $context;

    private bool $isRead = false;

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
        $this->isRead = true;

        return 'read';
    }

    public function stream_eof(): bool
    {
        return $this->isRead;
    }

    public function stream_write(string $bytes): int
    {
        $accepted = substr($bytes, 0, self::$capacity);
        self::$written .= $accepted;

        return \strlen($accepted);
    }
}
