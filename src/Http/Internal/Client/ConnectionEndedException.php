<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The server has closed the connection too early. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class ConnectionEndedException extends \RuntimeException
{
    /** @param bool $isUnanswered whether the connection ended before the first byte of a response */
    public function __construct(string $message, public readonly bool $isUnanswered = false)
    {
        parent::__construct($message);
    }
}
