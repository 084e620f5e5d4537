<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;

/** The client was closed or killed. */
final class ClientClosedException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;
}
