<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

use PHPUnit\Event\Code\TestMethod;
use PHPUnit\Event\Test\Prepared;
use PHPUnit\Event\Test\PreparedSubscriber;
use PHPUnit\Event\TestRunner\Finished;
use PHPUnit\Event\TestRunner\FinishedSubscriber;
use PHPUnit\Event\TestRunner\WarningTriggered;
use PHPUnit\Event\TestRunner\WarningTriggeredSubscriber;
use PHPUnit\Runner\Extension\Extension;
use PHPUnit\Runner\Extension\Facade;
use PHPUnit\Runner\Extension\ParameterCollection;
use PHPUnit\TextUI\Configuration\Configuration;
use Spindle\Tests\Scale;

/** Reports the start of each test, PHPUnit's warnings and its end to the runner. Without a runner, prints the seed. */
final class ReportsProgress implements Extension
{
    public function bootstrap(Configuration $configuration, Facade $facade, ParameterCollection $parameters): void
    {
        if (getenv(ClassRun::MARK) === false) {
            fprintf(STDERR, "Seed: %d (SPINDLE_TEST_SEED=%1\$d repeats this run)\n", Scale::seed());

            return;
        }
        $facade->registerSubscriber(new class implements WarningTriggeredSubscriber {
            public function notify(WarningTriggered $event): void
            {
                fwrite(STDERR, ClassRun::WARNING . strtr($event->message(), "\n", ' ') . "\n");
            }
        });
        $facade->registerSubscriber(new class ((int) getmypid()) implements FinishedSubscriber {
            public function __construct(private readonly int $pid) {}

            public function notify(Finished $event): void
            {
                fwrite(STDERR, ClassRun::END . (getmypid() === $this->pid ? ClassRun::ENDED : 'a fork') . "\n");
            }
        });
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
