<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\InvalidInputException;

final class WholeNumber
{
    private function __construct() {}

    /** @throws InvalidInputException naming the field, when the value is not a whole number or out of range */
    public static function of(string $field, mixed $value, int $least, int $most): int
    {
        $number = \is_string($value) && preg_match('/^\d{1,18}$/D', $value) === 1 ? (int) $value : $value;

        return \is_int($number) && $number >= $least && $number <= $most
            ? $number
            : throw new InvalidInputException([$field => "must be a whole number from {$least} to {$most}"]);
    }
}
