<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

/** What a pool promises, wherever its commands run. */
abstract class CommandPoolContract extends CommandPoolTestCase
{
    use Contract\DependsOnTheLauncher;
    use Contract\DependsOnThePool;
}
