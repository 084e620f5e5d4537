<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Spindle\Tests\TidyTestCase;

/** Base class of the tests of an HTTP server in the process of the test. */
abstract class HttpServerTestCase extends TidyTestCase
{
    use ServesHttp;
}
