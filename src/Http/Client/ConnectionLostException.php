<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;

/** The connection ended before the response was complete. The server may have processed the request. */
final class ConnectionLostException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;
}
