<?php

declare(strict_types=1);

namespace Aircraft;

/** The aircraft changed after it was read. Nothing was written. */
final class VersionConflictException extends \DomainException
{
    public static function of(Number $number): self
    {
        return new self("The aircraft {$number} has changed since it was read; the request changed nothing");
    }
}
