<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use Amp\DeferredFuture;
use Spindle\Remote\Broker;
use Spindle\Remote\Internal\JobCancellations;
use Spindle\Tests\Async;
use Spindle\Tests\TidyTestCase;

use function Amp\delay;

final class JobCancellationsTest extends TidyTestCase
{
    /** @var list<DeferredFuture<list<string>>> answers to the requests */
    private array $answers = [];

    public function testAnUnansweredRequestIsNotSentTwice(): void
    {
        $cancellations = $this->cancellations();
        $cancellations->add(['id'], false);
        $first = Async::run(static fn(): array => iterator_to_array($cancellations->send()));
        delay(0);
        $cancellations->add(['id'], false);
        self::assertFalse($cancellations->hasUnsent());
        $cancellations->add(['id'], true); // cancels more than the first request
        self::assertTrue($cancellations->hasUnsent());
        $second = Async::run(static fn(): array => iterator_to_array($cancellations->send()));
        delay(0);
        $cancellations->add(['id'], true);
        self::assertFalse($cancellations->hasUnsent());

        $this->answers[0]->complete([]);
        $this->answers[1]->complete(['id']);
        self::assertSame([[['id', false]], [['id', true]]], [$first->await(), $second->await()]);
        self::assertFalse($cancellations->hasPending());
    }

    private function cancellations(): JobCancellations
    {
        $broker = self::createStub(Broker::class);
        $request = function (): array {
            /** @var DeferredFuture<list<string>> $answer */
            $answer = new DeferredFuture();
            $this->answers[] = $answer;

            return $answer->getFuture()->await();
        };
        $broker->method('cancel')->willReturnCallback($request);
        $broker->method('cancelUnclaimed')->willReturnCallback($request);

        return new JobCancellations($broker, 'queue');
    }
}
