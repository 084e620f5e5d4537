<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;

/** A time limit was exceeded, but not while connecting: see the message. The server may have processed the request. */
final class RequestTimeoutException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;
}
