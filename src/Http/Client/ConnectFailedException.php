<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;

/** No connection to the server or the proxy was free or could be opened. The server has not received the request. */
final class ConnectFailedException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;
}
