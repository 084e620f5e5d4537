<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Refuses every session of PHP, because the next client of the process would get the same session. */
final class NoSessions implements \SessionHandlerInterface
{
    public function open(string $path, string $name): never
    {
        RequestFunctions::refuse('session_start');
    }

    public function read(string $id): false
    {
        return false;
    }

    public function write(string $id, string $data): bool
    {
        return false;
    }

    public function close(): bool
    {
        return true;
    }

    public function destroy(string $id): bool
    {
        return false;
    }

    public function gc(int $max_lifetime): false
    {
        return false;
    }

    /** PHP 9 requires this method and {@see validateId()}. PHP 8.6 warns if one of them is missing. */
    public function create_sid(): never
    {
        RequestFunctions::refuse('session_start');
    }

    public function validateId(string $id): false
    {
        return false;
    }
}
