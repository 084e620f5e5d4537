<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

use Spindle\Http\Client\ConnectFailedException;
use Spindle\Http\Client\ConnectionLostException;

/** A connection was closed too early. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class ConnectionEndedException extends \RuntimeException
{
    /**
     * @param bool $isUnanswered whether the connection ended before the first byte of a response
     * @param bool $isRequestUnread whether the connection ended before the server could read the request
     */
    public function __construct(
        string $message,
        public readonly bool $isUnanswered = false,
        private readonly bool $isRequestUnread = false,
    ) {
        parent::__construct($message);
    }

    /** @param string $when such as "without an answer" */
    public static function describe(ClientConnection $connection, string $when): string
    {
        $reason = $connection->readFailure === null ? '' : ": {$connection->readFailure}";

        return "{$connection->peer} closed the connection {$when}{$reason}";
    }

    public function asFailureOf(OutgoingRequest $request): ConnectFailedException|ConnectionLostException
    {
        return $this->isRequestUnread
            ? ConnectFailedException::of($request, $this->getMessage(), $this)
            : ConnectionLostException::of($request, $this->getMessage(), $this);
    }
}
