<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;

/** The server has closed the connection too early. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class ConnectionEndedException extends \RuntimeException
{
    /**
     * @param bool $isUnanswered whether the connection ended before the first byte of a response
     * @param bool $isRequestUnread whether it ended before the server could read the request
     */
    public function __construct(
        string $message,
        public readonly bool $isUnanswered = false,
        private readonly bool $isRequestUnread = false,
    ) {
        parent::__construct($message);
    }

    public function asFailureOf(OutgoingRequest $request): ConnectFailedException|ConnectionLostException
    {
        return $this->isRequestUnread
            ? ConnectFailedException::of($request, $this->getMessage(), $this)
            : ConnectionLostException::of($request, $this->getMessage(), $this);
    }
}
