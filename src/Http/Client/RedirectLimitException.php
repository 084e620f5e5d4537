<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\NetworkExceptionInterface;
use Spindle\Http\Internal\Client\IsFailureOfRequest;

/** The server redirects more often than {@see RequestOptions::$maxRedirects} allows. */
final class RedirectLimitException extends \RuntimeException implements HttpClientException, NetworkExceptionInterface
{
    use IsFailureOfRequest;
}
