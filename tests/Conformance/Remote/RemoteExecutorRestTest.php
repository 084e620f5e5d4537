<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\Conformance\Worker\Contract;

/** What goes through code that all executors share, and is tested with a pool as well. */
#[Group('full')]
final class RemoteExecutorRestTest extends RemoteExecutorTestCase
{
    use Contract\CarriesDepth;
    use Contract\CarriesValues;
    use Contract\IsShared;
    use Contract\RefusesWhatStays;
    use Contract\RunsCallables;
    use Contract\RunsTasks;
}
