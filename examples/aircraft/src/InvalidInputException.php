<?php

declare(strict_types=1);

namespace Aircraft;

/** External input is invalid. Each invalid field is named. */
final class InvalidInputException extends \DomainException
{
    /** @param array<string, string> $faults messages by field */
    public function __construct(public readonly array $faults)
    {
        parent::__construct(implode(
            '; ',
            array_map(
                static fn(string $field, string $fault): string => "{$field} {$fault}",
                array_keys($faults),
                $faults,
            ),
        ));
    }
}
