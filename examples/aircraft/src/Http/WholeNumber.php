<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\InvalidInputException;

final class WholeNumber
{
    private function __construct() {}

    /** @throws InvalidInputException naming the field, when the value is not a whole number or out of range */
    public static function of(string $field, mixed $value, int $min, int $max): int
    {
        $number = \is_string($value) && preg_match('/^\d{1,18}$/D', $value) === 1 ? (int) $value : $value;

        return \is_int($number) && $number >= $min && $number <= $max
            ? $number
            : throw new InvalidInputException([$field => "must be a whole number from {$min} to {$max}"]);
    }
}
