<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use PHPUnit\Event\Code\TestMethod;
use PHPUnit\Event\Test\Prepared;
use PHPUnit\Event\Test\PreparedSubscriber;
use PHPUnit\Runner\Extension\Extension;
use PHPUnit\Runner\Extension\Facade;
use PHPUnit\Runner\Extension\ParameterCollection;
use PHPUnit\TextUI\Configuration\Configuration;
use Spindle\Tests\Scale;

/** Tells the runner which test begins; prints the seed when there is no runner. */
final class ReportsProgress implements Extension
{
    public function bootstrap(Configuration $configuration, Facade $facade, ParameterCollection $parameters): void
    {
        if (getenv(ClassRun::MARK) === false) {
            fprintf(STDERR, "Seed: %d (SPINDLE_TEST_SEED=%1\$d repeats this run)\n", Scale::seed());

            return;
        }
        $facade->registerSubscriber(new class implements PreparedSubscriber {
            public function notify(Prepared $event): void
            {
                $test = $event->test();
                $name = $test instanceof TestMethod ? $test->nameWithClass() : $test->name();
                fwrite(STDERR, ClassRun::PROGRESS . $name . "\n");
            }
        });
    }
}
