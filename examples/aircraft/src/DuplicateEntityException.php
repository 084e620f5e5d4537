<?php

declare(strict_types=1);

namespace Aircraft;

/** An aircraft with this number already exists. */
final class DuplicateEntityException extends \DomainException
{
    public static function of(Number $number, \Throwable $previous): self
    {
        return new self("There is an aircraft {$number} already", previous: $previous);
    }
}
