<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

/** The whole contract of a command pool. */
abstract class CommandPoolContract extends CommandPoolTestCase
{
    use Contract\DependsOnTheLauncher;
    use Contract\DependsOnThePool;
}
