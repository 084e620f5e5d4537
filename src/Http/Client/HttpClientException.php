<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\ClientExceptionInterface;
use Spindle\SpindleException;

/** Thrown when a request, or a read of a response's body, fails. A status such as 404 causes no exception. */
interface HttpClientException extends ClientExceptionInterface, SpindleException {}
