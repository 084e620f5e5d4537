<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Types;

/** A value can not be encoded as the expected type. {@see Types} turns this into an InvalidParameterException. */
final class UnencodableException extends \UnexpectedValueException
{
    /** @param string $reason as a clause, without the value */
    private function __construct(public readonly string $phpType, public readonly string $reason)
    {
        parent::__construct($reason);
    }

    public static function of(#[\SensitiveParameter] mixed $value, string $reason = ''): self
    {
        return new self(get_debug_type($value), $reason);
    }
}
