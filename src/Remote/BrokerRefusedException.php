<?php

declare(strict_types=1);

namespace Spindle\Remote;

/** The engine refuses, or is set up so that it would lose jobs: somebody has to change that, and to ask again does not help. */
final class BrokerRefusedException extends BrokerException
{
    public static function at(string $address, string $why, string $advice, ?\Throwable $previous = null): self
    {
        return new self("The broker at {$address} can't be used: {$why}; {$advice}", 0, $previous);
    }
}
