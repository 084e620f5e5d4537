<?php

declare(strict_types=1);

namespace Aircraft;

/** What came from outside is not as it must be; each field at fault is named. */
final class InvalidInputException extends \DomainException
{
    /** @param array<string, string> $faults what is wrong, by field */
    public function __construct(public readonly array $faults)
    {
        parent::__construct(implode('; ', array_map(static fn(string $field, string $fault): string => "{$field} {$fault}", array_keys($faults), $faults)));
    }
}
