<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

/** The whole contract of a command pool. */
abstract class CommandPoolContract extends LauncherIndependentContract
{
    use Contract\DependsOnTheLauncher;
}
