<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

/** A PHP file that can be read only once, as from a FIFO or an HTTP server. */
final class OnceReadable
{
    public static int $openCount = 0;

    /** @var resource|null */
    public $context;

    private string $unread = "<?php return 'included';";

    public function stream_open(): bool
    {
        ++self::$openCount;

        return true;
    }

    public function stream_read(): string
    {
        [$read, $this->unread] = [$this->unread, ''];

        return $read;
    }

    public function stream_eof(): bool
    {
        return $this->unread === '';
    }

    /** @return array{} */
    public function stream_stat(): array
    {
        return [];
    }

    public function stream_set_option(): bool
    {
        return false;
    }
}
