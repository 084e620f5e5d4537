<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * Thrown when the engine can't be reached, does not answer, or accepts nothing at present. The operation may have been
 * done, and repeating it is safe.
 */
final class BrokerUnavailableException extends BrokerException
{
    public static function at(string $address, string $why, ?\Throwable $previous = null): self
    {
        return new self("The broker at {$address} is not available: {$why}", 0, $previous);
    }
}
