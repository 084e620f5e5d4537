<?php

declare(strict_types=1);

namespace Spindle\Remote;

/**
 * The engine can't be reached, does not answer, or takes nothing at present. What was asked of it may have been done:
 * all that Spindle asks can be asked again.
 */
final class BrokerUnavailableException extends BrokerException
{
    public static function at(string $address, string $why, ?\Throwable $previous = null): self
    {
        return new self("The broker at {$address} is not available: {$why}", 0, $previous);
    }
}
