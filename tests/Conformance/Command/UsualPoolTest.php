<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\StartMethod;

/** A pool with the default launcher. */
final class UsualPoolTest extends CommandPoolTestCase
{
    use Contract\DependsOnThePool;

    protected function start(): StartMethod
    {
        return StartMethod::Auto;
    }
}
