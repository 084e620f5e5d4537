<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Spindle\Http\ClientLeftException;

/** Detects whether a request ended because its client has left. */
final class ClientDisconnect
{
    private function __construct() {}

    /** Returns whether a departure is among the causes. A cancellation has its reason as the previous exception. */
    public static function caused(\Throwable $failure): bool
    {
        for ($cause = $failure; $cause !== null; $cause = $cause->getPrevious()) {
            if ($cause instanceof ClientLeftException) {
                return true;
            }
        }

        return false;
    }
}
