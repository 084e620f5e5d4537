<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\ClientExceptionInterface;
use Spindle\SpindleException;

/** Implemented by all exceptions of requests and reads of response bodies. A status such as 404 causes no exception. */
interface HttpClientException extends ClientExceptionInterface, SpindleException {}
