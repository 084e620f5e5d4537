<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

/** Connecting to an address, or an operation on a connection, failed. The message is a clause. */
class NetworkException extends \RuntimeException
{
    /** @param string $why reason, as a clause that is shown after the address */
    public static function because(string $why, ?\Throwable $previous = null): self
    {
        return new self($why, 0, $previous);
    }

    /** @param string $for what the client waited for, such as "the TLS handshake" */
    public static function timedOut(string $for, float $seconds): self
    {
        return new self("no answer within {$seconds} s, while waiting for {$for}");
    }
}
