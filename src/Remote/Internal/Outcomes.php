<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

/** The bodies of frames that hold an outcome: u8 what it is, u32 attempts, u32 items that were stored before, and the outcome's own bytes. */
final class Outcomes
{
    public const HEAD = 9;

    private const TASK = 1;
    private const CANCELLED = 2;

    public static function ofTask(int $attempts, int $items, string $bytes): string
    {
        return pack('CVV', self::TASK, $attempts, $items) . $bytes;
    }

    public static function cancelled(): string
    {
        return pack('CVV', self::CANCELLED, 0, 0);
    }

    /** @return array{int, int, bool} attempts, items, and whether it was cancelled */
    public static function head(string $outcome): array
    {
        /** @var array{kind: int, attempts: int, items: int} $head */
        $head = unpack('Ckind/Vattempts/Vitems', $outcome);

        return [$head['attempts'], $head['items'], $head['kind'] === self::CANCELLED];
    }
}
