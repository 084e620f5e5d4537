<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Tests\CatchesThrown;

/** The part of the contract that is independent of the start method. */
abstract class LauncherIndependentContract extends CommandPoolTestCase
{
    use CatchesThrown;
    use Contract\KeepsLargeOutput;
    use Contract\DeliversOutput;
    use Contract\ReadsInput;
    use Contract\CancelsCommands;
    use Contract\RunsLazily;
    use Contract\YieldsResults;
    use Contract\RunsTogether;
    use Contract\IsControlled;
    use Contract\Retries;
    use Contract\Halts;
}
