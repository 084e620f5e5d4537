<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The server has closed the connection too early. The message is a clause for {@see IsFailureOfRequest::of()}. */
final class ConnectionEndedException extends \RuntimeException
{
    /** @param bool $isUnanswered whether not one byte of a response has arrived */
    public function __construct(string $message, public readonly bool $isUnanswered = false)
    {
        parent::__construct($message);
    }
}
