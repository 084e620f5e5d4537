<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

/** Splits bytes into pieces, as pipes may. */
final class Splits
{
    /** @return list<string> pieces of random lengths up to `$longest`; mt_rand() decides */
    public static function random(string $bytes, int $longest): array
    {
        $pieces = [];
        for ($at = 0, $size = \strlen($bytes); $at < $size; $at += $length) {
            $length = mt_rand(1, $longest);
            $pieces[] = substr($bytes, $at, $length);
        }

        return $pieces;
    }

    public static function bytes(int $length): string
    {
        $bytes = '';
        for ($i = 0; $i < $length; ++$i) {
            $bytes .= \chr(mt_rand(0, 255));
        }

        return $bytes;
    }

    /** Returns random bytes that an argument may contain. */
    public static function argument(): string
    {
        return str_replace("\0", "\1", self::bytes(mt_rand(0, 100)));
    }
}
