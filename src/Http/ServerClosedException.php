<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/** Thrown when a server or supervisor can't start: it was closed or killed, or had connections before this fork. */
final class ServerClosedException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function server(): self
    {
        return new self('The server is closed and can not be started again. Create another HttpServer');
    }

    /** @internal */
    public static function inFork(): self
    {
        return new self('This server serves in the parent process of this fork. Create another HttpServer');
    }

    /** @internal */
    public static function supervisor(): self
    {
        return new self('The supervisor is closed and can not run again. Create another Supervisor');
    }
}
