<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

final class NetworkTimeoutException extends NetworkException
{
    /** Answer or step that the caller waited for, such as "the TLS handshake". */
    public string $for = '';

    public static function waitingFor(string $for, float $seconds): self
    {
        $timeout = new self("no answer within {$seconds} s, while waiting for {$for}");
        $timeout->for = $for;

        return $timeout;
    }
}
