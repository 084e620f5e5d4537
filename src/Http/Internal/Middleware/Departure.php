<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Middleware;

use Spindle\Http\ClientLeftException;

/** Whether a request came to its end because nobody waits for the answer any more. */
final class Departure
{
    private function __construct() {}

    /** A cancellation has what it was requested with as the exception before it. */
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
