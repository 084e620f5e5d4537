<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Spindle\Tests\TidyTestCase;

/** Base class of the tests of `spindle serve`. */
abstract class ServeTestCase extends TidyTestCase
{
    use RunsServe;
}
