<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use PHPUnit\Framework\Attributes\Group;
use Spindle\Tests\Conformance\Worker\Contract;

/**
 * The rest of the executor contract. It covers code that all executors share; short test runs cover it with a pool
 * only.
 */
#[Group('full')]
final class RemoteExecutorRestTest extends RemoteExecutorTestCase
{
    use Contract\CarriesDepth;
    use Contract\CarriesValues;
    use Contract\IsShared;
    use Contract\RefusesUnserializable;
    use Contract\RunsCallables;
    use Contract\RunsTasks;
}
