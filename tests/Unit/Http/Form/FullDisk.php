<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

/** A file system of limited size, "full-disk://anywhere". Files can be created, but writes beyond the limit fail. */
final class FullDisk
{
    public const DIRECTORY = 'full-disk://anywhere';

    /** Size in bytes. */
    private const ROOM = 100_000;

    /** @var array<string, true> the names that there are */
    public static array $names = [];

    public static int $open = 0;

    /** @var resource|null set by PHP */
    public $context;

    private int $size = 0;

    public static function mount(): void
    {
        self::$names = [];
        self::$open = 0;
        stream_wrapper_register('full-disk', self::class);
    }

    public static function unmount(): void
    {
        stream_wrapper_unregister('full-disk');
    }

    public function stream_open(string $path): bool
    {
        self::$names[$path] = true;
        ++self::$open;

        return true;
    }

    public function stream_write(string $bytes): int
    {
        $written = min(\strlen($bytes), self::ROOM - $this->size);
        $this->size += $written;

        return $written;
    }

    public function stream_close(): void
    {
        --self::$open;
    }

    public function unlink(string $path): bool
    {
        unset(self::$names[$path]);

        return true;
    }
}
