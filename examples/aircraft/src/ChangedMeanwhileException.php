<?php

declare(strict_types=1);

namespace Aircraft;

/** It is not as it was when it was read; nothing was changed. */
final class ChangedMeanwhileException extends \DomainException
{
    public static function of(Number $number): self
    {
        return new self("The aircraft {$number} was changed by somebody else meanwhile; nothing was changed");
    }
}
