<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Thrown when the engine refuses a request, or its settings would lose jobs. A retry does not help. */
final class BrokerRefusedException extends BrokerException
{
    public static function at(string $address, string $why, string $advice, ?\Throwable $previous = null): self
    {
        return new self("The broker at {$address} can't be used: {$why}; {$advice}", 0, $previous);
    }
}
