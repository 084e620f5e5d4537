<?php

declare(strict_types=1);

namespace Aircraft;

/** The identifier of an aircraft, such as D-AIMA. */
final readonly class Number implements \Stringable
{
    private function __construct(private string $number) {}

    /**
     * @param string $field the field's name in errors
     *
     * @throws InvalidInputException
     */
    public static function of(mixed $number, string $field = 'number'): self
    {
        $fault = match (true) {
            $number === null => 'is missing',
            !\is_string($number), preg_match(
                '/^[A-Z0-9][A-Z0-9-]{0,15}$/D',
                $number,
            ) !== 1 => 'must be 1 to 16 capital letters, digits and hyphens, and not begin with a hyphen',
            default => null,
        };

        return $fault === null ? new self($number) : throw new InvalidInputException([$field => $fault]);
    }

    public function __toString(): string
    {
        return $this->number;
    }
}
