<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The engine (Redis or Valkey) gives no answer or a temporary error. It may have done the operation anyway. */
final class BrokerUnavailableException extends BrokerException
{
    public static function at(string $address, string $why, ?\Throwable $previous = null): self
    {
        return new self("The engine at {$address} is not available: {$why}", 0, $previous);
    }
}
