<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/**
 * The client was closed or killed, or another process or event loop has sent the request. The message becomes `$why`
 * of {@see IsFailureOfRequest::of()}.
 */
final class ClosedException extends \RuntimeException
{
    public static function inFork(): self
    {
        return new self('this process is a fork of the one that sends the request');
    }

    public static function inOtherLoop(): self
    {
        return new self('EventLoop::setDriver() has replaced the event loop in which the request was sent');
    }
}
