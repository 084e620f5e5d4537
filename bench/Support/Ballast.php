<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Memory as an application holds it: very many small values. */
final class Ballast
{
    private const MEGABYTE = 1 << 20;

    /** @return list<list<string>> values for which PHP has allocated memory up to this total number of megabytes */
    public static function of(int $megabytes): array
    {
        $values = [];
        for ($i = 0; memory_get_usage(true) < $megabytes * self::MEGABYTE; ++$i) {
            $values[] = array_map(
                static fn(int $n): string => "value {$n} of {$i}, one of many small ones",
                range(1, 1000),
            );
        }

        return $values;
    }
}
