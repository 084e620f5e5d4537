<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Spindle\Http\ClientDisconnectedException;

/** Detects exceptions that were thrown because the request was cancelled, for example by a disconnect. */
final class ClientDisconnect
{
    public static function caused(\Throwable $failure): bool
    {
        for ($cause = $failure; $cause !== null; $cause = $cause->getPrevious()) {
            if ($cause instanceof ClientDisconnectedException) {
                return true;
            }
        }

        return false;
    }
}
