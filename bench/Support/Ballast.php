<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Memory that a process holds as an application does: very many small values. */
final class Ballast
{
    private const MEGABYTE = 1 << 20;

    /** @return list<list<string>> so much that PHP has taken this many megabytes from the system in all */
    public static function of(int $megabytes): array
    {
        $values = [];
        for ($i = 0; memory_get_usage(true) < $megabytes * self::MEGABYTE; ++$i) {
            $values[] = array_map(static fn(int $n): string => "value {$n} of {$i}, one of many small ones", range(1, 1000));
        }

        return $values;
    }
}
