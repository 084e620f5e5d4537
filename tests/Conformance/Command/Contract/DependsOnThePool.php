<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

/**
 * The part of the contract that is independent of the start method.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait DependsOnThePool
{
    use KeepsLargeOutput;
    use DeliversOutput;
    use ReadsInput;
    use CancelsCommands;
    use RunsLazily;
    use YieldsResults;
    use RunsTogether;
    use IsControlled;
    use Retries;
    use Halts;
}
