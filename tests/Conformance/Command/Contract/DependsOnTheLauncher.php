<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

/**
 * The part of the contract that each start method could break: start, end, signals, input, output and limits.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait DependsOnTheLauncher
{
    use KeepsOutput;
    use StreamsOutput;
    use TakesInput;
    use EndsCommands;
    use EndsTrees;
    use ReportsEndings;
    use StartsCommands;
}
