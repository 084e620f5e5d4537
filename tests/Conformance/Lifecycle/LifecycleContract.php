<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Amp\TimeoutCancellation;
use Amp\TimeoutException;
use PHPUnit\Framework\TestCase;
use Spindle\Lifecycle;
use Spindle\Tests\LeavesNothing;

use function Amp\async;
use function Amp\delay;

/** Checks close() and kill() of each class that has them. */
abstract class LifecycleContract extends TestCase
{
    use LeavesNothing;

    /** Seconds within which an end has to be complete. */
    protected const TIMEOUT = 10.0;

    /** Returns an object that is ready for work. */
    abstract protected function create(): Lifecycle;

    /**
     * Starts a unit of work that runs until {@see finish()}. Returns when it is running.
     *
     * @return Future<mixed> its outcome: true when it was finished, or an exception or a failed outcome
     */
    abstract protected function begin(Lifecycle $object): Future;

    /** Lets the work that {@see begin()} has started finish. */
    abstract protected function finish(): void;

    /** Gives the object other work, which it has to refuse. Throws what the caller gets. */
    abstract protected function giveMore(Lifecycle $object): void;

    /** @return class-string<\Throwable> exception of work that is refused */
    abstract protected function refusal(): string;

    public function testCloseFinishesAcceptedWorkAndRefusesMore(): void
    {
        $object = $this->create();
        $work = $this->begin($object);
        $closing = async($object->close(...));
        delay(0);
        $this->assertRefusesWork($object);
        self::assertFalse($closing->isComplete());
        $this->finish();

        self::assertTrue($work->await(new TimeoutCancellation(self::TIMEOUT)));
        $closing->await(new TimeoutCancellation(self::TIMEOUT));
        $this->assertRefusesWork($object);
    }

    public function testCloseWithoutWorkReturns(): void
    {
        $object = $this->create();
        $object->close(new TimeoutCancellation(self::TIMEOUT));
        $object->close(new TimeoutCancellation(self::TIMEOUT));

        $this->assertRefusesWork($object);
    }

    public function testASecondCloseWaitsAsWell(): void
    {
        $object = $this->create();
        $work = $this->begin($object);
        $closings = [async($object->close(...)), async($object->close(...))];
        delay(0);
        foreach ($closings as $closing) {
            self::assertFalse($closing->isComplete());
        }
        $this->finish();
        self::assertTrue($work->await(new TimeoutCancellation(self::TIMEOUT)));
        foreach ($closings as $closing) {
            $closing->await(new TimeoutCancellation(self::TIMEOUT));
        }
    }

    public function testACancelledCloseKills(): void
    {
        $object = $this->create();
        $work = $this->begin($object);
        $cancellation = new DeferredCancellation();
        $closing = async($object->close(...), $cancellation->getCancellation());
        delay(0);
        $cancellation->cancel();
        try {
            $closing->await(new TimeoutCancellation(self::TIMEOUT));
            self::fail('close() did not throw');
        } catch (CancelledException) {
        }
        self::assertWasEnded($work);
        $this->assertRefusesWork($object);
    }

    public function testKillEndsWorkNow(): void
    {
        $object = $this->create();
        $work = $this->begin($object);
        $object->kill();
        self::assertWasEnded($work);
        $object->kill();
        $object->close(new TimeoutCancellation(self::TIMEOUT));

        $this->assertRefusesWork($object);
    }

    public function testKillEndsTheWaitOfClose(): void
    {
        $object = $this->create();
        $work = $this->begin($object);
        $closing = async($object->close(...));
        delay(0);
        $object->kill();
        self::assertWasEnded($work);
        $closing->await(new TimeoutCancellation(self::TIMEOUT));
    }

    protected function assertRefusesWork(Lifecycle $object): void
    {
        $refused = null;
        try {
            $this->giveMore($object);
        } catch (\Throwable $refused) {
        }
        self::assertInstanceOf($this->refusal(), $refused, $refused?->getMessage() ?? 'The work was accepted');
    }

    /** @param Future<mixed> $work */
    private static function assertWasEnded(Future $work): void
    {
        try {
            $outcome = $work->await(new TimeoutCancellation(self::TIMEOUT));
        } catch (\Throwable $ended) {
            self::assertNotInstanceOf(TimeoutException::class, $ended->getPrevious(), 'There is no outcome in time');

            return;
        }
        self::assertNotTrue($outcome, 'The work has finished as if it was not ended');
    }
}
