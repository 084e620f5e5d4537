<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Server;

use Psr\Http\Message\StreamInterface;
use Spindle\Http\Internal\Message\ReadOnlyStream;

/** A stream without data at present, which returns '' instead of suspending. */
final class Hesitant implements StreamInterface
{
    use ReadOnlyStream;

    public string $bytes = '';
    public int $asked = 0;
    public bool $closed = false;

    private bool $ended = false;

    public function read(int $length): string
    {
        ++$this->asked;
        $this->ended = $this->bytes !== '';

        return $this->bytes;
    }

    public function eof(): bool
    {
        return $this->ended;
    }

    public function tell(): int
    {
        return 0;
    }

    public function close(): void
    {
        $this->closed = true;
    }
}
