<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** The part of the pool contract whose result may depend on the kind of worker. */
abstract class ContextDependentPoolContract extends PoolTestCase
{
    use Contract\CarriesOutput;
    use Contract\Closes;
    use Contract\KeepsSecrets;
    use Contract\LimitsTime;
    use Contract\PreparesWorkers;
    use Contract\SurvivesCrashes;
}
