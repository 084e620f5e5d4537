<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Refuses every session of PHP, because the next client of the process would get the same session. */
final class NoSessions extends \SessionHandler
{
    public function open(string $path, string $name): never
    {
        RequestFunctions::refuse('session_start');
    }

    /** PHP 9 requires this method. PHP 8.6 warns if it is missing. */
    public function validateId(string $id): false
    {
        return false;
    }
}
