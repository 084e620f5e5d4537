<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

final class NetworkTimeoutException extends NetworkException
{
    /** Answer or step that the caller waited for, such as "the TLS handshake". */
    public string $awaited = '';

    public static function waitingFor(string $awaited, float $seconds): self
    {
        $timeout = new self("no answer within {$seconds} s, while waiting for {$awaited}");
        $timeout->awaited = $awaited;

        return $timeout;
    }
}
