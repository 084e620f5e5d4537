<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\TimeoutCancellation;
use Spindle\Lifecycle;

/** Checks close() where it would wait for its own fiber. */
trait RefusesCloseWithinWork
{
    /** Calls the closure in a fiber for whose work close() waits. */
    abstract protected function runWithinWork(Lifecycle $object, \Closure $call): void;

    public function testARefusedCloseChangesNothing(): void
    {
        $object = $this->create();
        $refusal = null;
        $this->runWithinWork($object, static function () use ($object, &$refusal): void {
            try {
                $object->close(new TimeoutCancellation(self::TIMEOUT));
            } catch (\LogicException $refusal) {
            }
        });
        self::assertStringContainsString('close() would wait for itself', $refusal?->getMessage() ?? '');
        $this->giveMore($object);
        $object->close(new TimeoutCancellation(self::TIMEOUT));

        $this->assertRefusesWork($object);
    }
}
