<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** Thrown when the engine gives no answer, or accepts nothing at present. Repeating any operation is safe. */
final class BrokerUnavailableException extends BrokerException
{
    public static function at(string $address, string $why, ?\Throwable $previous = null): self
    {
        return new self("The broker at {$address} is not available: {$why}", 0, $previous);
    }
}
