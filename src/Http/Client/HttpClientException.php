<?php

declare(strict_types=1);

namespace Spindle\Http\Client;

use Psr\Http\Client\ClientExceptionInterface;
use Spindle\SpindleException;

/** Implemented by all exceptions of failed requests and their responses. A response such as 404 is no failure. */
interface HttpClientException extends ClientExceptionInterface, SpindleException {}
