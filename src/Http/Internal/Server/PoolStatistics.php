<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Spindle\Statistics;

/** Reads the statistics of an application's pool. The pool's code may throw or return wrong values. */
final class PoolStatistics
{
    /** @return array<string, int|float> the values that are finite numbers; each other value is named in a warning */
    public static function of(Statistics $pool, Service $service): array
    {
        try {
            $values = $pool->statistics();
            $numbers = array_filter($values, self::isNumber(...));
            foreach (array_keys(array_diff_key($values, $numbers)) as $name) {
                $service->warnOnce("The value {$name} of " . $pool::class . ' is not a finite number, and is left out');
            }

            return $numbers;
        } catch (\Throwable $failure) {
            $service->warnOnce('The statistics of ' . $pool::class . ' could not be read', $failure);

            return [];
        }
    }

    /** Returns whether a value is a finite number. No native type of {@see Statistics} can require such values. */
    private static function isNumber(mixed $value): bool
    {
        return \is_int($value) || \is_float($value) && is_finite($value);
    }
}
