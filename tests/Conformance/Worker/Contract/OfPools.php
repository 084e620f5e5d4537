<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Contract;

use Spindle\Tests\Conformance\Worker\PoolTestCase;

/**
 * All that pools promise beyond what executors do.
 *
 * @phpstan-require-extends PoolTestCase
 */
trait OfPools
{
    use CarriesOutput;
    use Closes;
    use KeepsSecrets;
    use KnowsClasses;
    use LimitsTime;
    use PreparesWorkers;
    use ReplacesWorkers;
    use SparesNeighbours;
    use SurvivesCrashes;
    use TriesAgain;
}
