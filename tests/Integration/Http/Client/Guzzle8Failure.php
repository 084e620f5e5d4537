<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Http\Client;

use GuzzleHttp\Exception\RequestException;

/** Stands for Guzzle 8's exception of a failure after the head of a response. */
final class Guzzle8Failure extends RequestException {}
