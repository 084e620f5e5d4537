<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\SpindleException;

/**
 * The reason why a request was cancelled: the client closed the connection or was too slow, the handler exceeded its
 * deadline, or the server stopped.
 */
final class ClientDisconnectedException extends \RuntimeException implements SpindleException
{
    private function __construct(string $message)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function closed(): self
    {
        return new self('The client closed the connection');
    }

    /** @internal */
    public static function bodyIncomplete(): self
    {
        return new self('The client closed the connection in the middle of the body');
    }

    /** @internal */
    public static function tooSlow(): self
    {
        return new self('The connection was closed, because the client was too slow');
    }

    /** @internal */
    public static function evicted(): self
    {
        return new self('The connection was closed to make room for others, because the client was too slow');
    }

    /** @internal */
    public static function handlerTimeout(float $seconds): self
    {
        return new self("The handler did not answer within {$seconds} s");
    }

    /** @internal */
    public static function stopped(): self
    {
        return new self('The server stopped');
    }
}
