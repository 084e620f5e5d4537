<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/**
 * A reusable NULL-terminated array of C strings, for the arguments and the environment of exec.
 *
 * All strings are in one block of memory, and PHP computes their addresses. So {@see fill()} calls memcpy() only twice,
 * for any number of strings.
 */
final class Vector
{
    public \FFI\CData $pointers;
    private \FFI\CData $strings;
    private int $size = 0;
    private int $count = 0;
    private int $address = 0;

    /** @param bool $usesArgz whether {@see fillJoined()} calls argz_extract() of glibc, which is faster than PHP */
    public function __construct(private readonly Libc $libc, private readonly bool $usesArgz)
    {
        $this->strings = $libc->new('char[1]');
        $this->pointers = $libc->new('uint64_t[1]');
        $this->reserve(1 << 16, 1 << 10);
    }

    /**
     * @param list<string> $values strings without NUL bytes, except at the end of the first string. This padding
     *     reserves space for a longer value of {@see replaceFirst()}
     */
    public function fill(array $values): void
    {
        $block = implode("\0", $values) . "\0";
        $this->reserve(\strlen($block), \count($values) + 1);
        $addresses = [];
        $at = $this->address;
        foreach ($values as $value) {
            $addresses[] = $at;
            $at += \strlen($value) + 1;
        }
        $addresses[] = 0;
        \FFI::memcpy($this->strings, $block, \strlen($block));
        $packed = pack('Q*', ...$addresses);
        \FFI::memcpy($this->pointers, $packed, \strlen($packed));
    }

    /** @param string $values strings with NUL bytes between them */
    public function fillJoined(string $values): void
    {
        if (!$this->usesArgz) {
            $this->fill(explode("\0", $values));

            return;
        }
        $size = \strlen($values) + 1;
        $this->reserve($size, substr_count($values, "\0") + 2);
        \FFI::memcpy($this->strings, "{$values}\0", $size);
        $this->libc->functions->argz_extract($this->strings, $size, $this->pointers);
    }

    /** @param string $value new first string, at most as long as the first string of {@see fill()} with its padding */
    public function replaceFirst(string $value): void
    {
        \FFI::memcpy($this->strings, "{$value}\0", \strlen($value) + 1);
    }

    private function reserve(int $size, int $count): void
    {
        if ($size > $this->size) {
            $this->size = $size;
            $this->strings = $this->libc->new("char[{$size}]");
            $this->address = $this->libc->address($this->strings);
        }
        if ($count > $this->count) {
            $this->count = $count;
            $this->pointers = $this->libc->new("uint64_t[{$count}]");
        }
    }
}
