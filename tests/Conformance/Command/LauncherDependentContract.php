<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

/** The part of the contract that each start method could break. */
abstract class LauncherDependentContract extends CommandPoolTestCase
{
    use Contract\DependsOnTheLauncher;
    use SharesAPool;
}
