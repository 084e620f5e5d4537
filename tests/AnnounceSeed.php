<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Runner\Extension\Extension;
use PHPUnit\Runner\Extension\Facade;
use PHPUnit\Runner\Extension\ParameterCollection;
use PHPUnit\TextUI\Configuration\Configuration;

final class AnnounceSeed implements Extension
{
    public function bootstrap(Configuration $configuration, Facade $facade, ParameterCollection $parameters): void
    {
        fprintf(STDERR, "Seed: %d (SPINDLE_TEST_SEED=%1\$d repeats this run)\n", Scale::seed());
    }
}
