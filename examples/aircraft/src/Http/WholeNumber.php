<?php

declare(strict_types=1);

namespace Aircraft\Http;

use Aircraft\InvalidInputException;

final class WholeNumber
{
    private function __construct() {}

    /** @throws InvalidInputException that names the field, when it is none or out of range */
    public static function of(string $field, mixed $value, int $least, int $most): int
    {
        $number = \is_int($value) || \is_string($value) ? filter_var($value, \FILTER_VALIDATE_INT, ['options' => ['min_range' => $least, 'max_range' => $most]]) : false;

        return $number !== false ? $number : throw new InvalidInputException([$field => "must be a whole number from {$least} to {$most}"]);
    }
}
