<?php

declare(strict_types=1);

namespace Spindle\Site\Reference;

/** The PHP code of a constant value. */
final class Value
{
    public static function shown(mixed $value): string
    {
        return match (true) {
            $value === null => 'null',
            $value instanceof \UnitEnum => ClassNames::short($value::class) . "::{$value->name}",
            \is_object($value) => 'new ' . ClassNames::short($value::class) . '()',
            \is_array($value) => '[' . implode(', ', array_map(
                static fn(int|string $key, mixed $item): string
                    => (\is_int($key) ? '' : var_export($key, true) . ' => ') . self::shown($item),
                array_keys($value),
                $value,
            )) . ']',
            default => addcslashes(var_export($value, true), "\0..\37"),
        };
    }
}
