<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/**
 * The client was closed or killed, or this process is a fork that has inherited the request. The message becomes
 * `$why` of {@see IsFailureOfRequest::of()}.
 */
final class ClosedException extends \RuntimeException
{
    public static function inFork(): self
    {
        return new self('this process is a fork of the one that sends the request');
    }
}
