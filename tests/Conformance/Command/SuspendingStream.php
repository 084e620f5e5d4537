<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use function Amp\delay;

/** A stream wrapper whose reads and writes suspend the fiber. */
final class SuspendingStream
{
    public const PROTOCOL = 'suspending';

    private const SECONDS = 0.02;

    public static string $written = '';

    /** @var resource|null set by PHP */
    public $context;

    private bool $isRead = false;

    public function stream_open(): bool
    {
        return true;
    }

    public function stream_read(): string
    {
        delay(self::SECONDS);
        $this->isRead = true;

        return 'read';
    }

    public function stream_eof(): bool
    {
        return $this->isRead;
    }

    public function stream_write(string $bytes): int
    {
        delay(self::SECONDS);
        self::$written .= $bytes;

        return \strlen($bytes);
    }
}
