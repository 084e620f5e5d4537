<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\StartMethod;

/** A pool with the default launcher. */
final class UsualPoolTest extends LauncherIndependentContract
{
    protected function start(): StartMethod
    {
        return StartMethod::Auto;
    }
}
