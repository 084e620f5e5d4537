<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The engine (Redis or Valkey) refuses a request, or would lose jobs with its settings. A retry does not help. */
final class BrokerRefusedException extends BrokerException
{
    public static function at(string $address, string $why, string $advice, ?\Throwable $previous = null): self
    {
        return new self("The engine at {$address} can't be used: {$why}; {$advice}", 0, $previous);
    }
}
