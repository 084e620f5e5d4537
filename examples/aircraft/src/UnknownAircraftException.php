<?php

declare(strict_types=1);

namespace Aircraft;

/** No aircraft has this number. */
final class UnknownAircraftException extends \DomainException
{
    public static function of(Number $number): self
    {
        return new self("There is no aircraft {$number}");
    }
}
