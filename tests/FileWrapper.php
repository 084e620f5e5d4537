<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** Replaces PHP's `file://` stream wrapper, as php-vcr and dg/bypass-finals do. Passes each call to PHP's wrapper. */
final class FileWrapper
{
    /** @var resource|null set by PHP */
    public $context;

    /** @var resource */
    private mixed $stream; // @phpstan-ignore property.uninitialized (PHP opens it first)

    public static function install(): void
    {
        stream_wrapper_unregister('file');
        stream_wrapper_register('file', self::class);
    }

    public static function remove(): void
    {
        stream_wrapper_restore('file');
    }

    public function stream_open(string $path, string $mode): bool
    {
        return $this->open(static fn(): mixed => @fopen($path, $mode));
    }

    public function dir_opendir(string $path): bool
    {
        return $this->open(static fn(): mixed => @opendir($path));
    }

    public function stream_read(int $bytes): string|false
    {
        return fread($this->stream, max(1, $bytes));
    }

    public function stream_write(string $bytes): int
    {
        return (int) fwrite($this->stream, $bytes);
    }

    public function stream_eof(): bool
    {
        return feof($this->stream);
    }

    public function stream_seek(int $offset, int $from): bool
    {
        return fseek($this->stream, $offset, $from) === 0;
    }

    public function stream_tell(): int
    {
        return (int) ftell($this->stream);
    }

    /** @return array<int|string, int>|false */
    public function stream_stat(): array|false
    {
        return fstat($this->stream);
    }

    public function stream_set_option(): bool
    {
        return false;
    }

    /** @return resource */
    public function stream_cast(): mixed
    {
        return $this->stream;
    }

    public function stream_close(): void
    {
        fclose($this->stream);
    }

    public function dir_readdir(): string|false
    {
        return readdir($this->stream);
    }

    public function dir_closedir(): void
    {
        closedir($this->stream);
    }

    /** @return array<int|string, int>|false */
    public function url_stat(string $path, int $flags): array|false
    {
        $isLink = ($flags & \STREAM_URL_STAT_LINK) !== 0;

        return self::native(static fn(): array|false => $isLink ? @lstat($path) : @stat($path));
    }

    /** Supports chmod(), and not touch(). */
    public function stream_metadata(string $path, int $option, int $mode): bool
    {
        return self::native(static fn(): bool => chmod($path, $mode));
    }

    public function mkdir(string $path, int $mode): bool
    {
        return self::native(static fn(): bool => mkdir($path, $mode));
    }

    public function unlink(string $path): bool
    {
        return self::native(static fn(): bool => unlink($path));
    }

    /** @param \Closure(): (resource|false) $open */
    private function open(\Closure $open): bool
    {
        $stream = self::native($open);
        if ($stream === false) {
            return false;
        }
        $this->stream = $stream;

        return true;
    }

    /**
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    private static function native(\Closure $call): mixed
    {
        self::remove();
        try {
            return $call();
        } finally {
            self::install();
        }
    }
}
