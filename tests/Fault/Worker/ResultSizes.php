<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Host;
use Spindle\Worker\MapOutcome;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/** Tests results that are larger than the pool accepts. */
trait ResultSizes
{
    #[TestWith([80, UnserializableException::class])]
    #[TestWith([24, 'string'])]
    public function testAResultThatIsLargeForTheMemoryOfItsReceiverDoesNotEndThat(int $megabytes, string $outcome): void
    {
        $outcomes = Host::call(
            HostPrograms::class . '::receive',
            [$this->context()->name, $megabytes << 20],
            options: ['-d', 'memory_limit=100M'],
        );

        self::assertSame([$outcome, 'string'], $outcomes);
    }

    public function testAResultMayBeAsLargeAsThePoolAcceptsAndNoLarger(): void
    {
        $pool = $this->poolForResultsOf(100_000);
        self::assertSame(100_000, \strlen(self::textOf(self::outcome($pool->submit(new Call('bytes', 100_000))))));
        $refused = self::outcome($pool->submit(new Call('bytes', 100_001)));

        self::assertInstanceOf(UnserializableException::class, $refused);
        self::assertSame('The result', $refused->path);
        self::assertStringContainsString(
            '100001 bytes long, more than the 100000 of WorkerPoolOptions::$maxResultBytes',
            $refused->what,
        );
        self::assertSame(
            'send less, such as the path of a file, or raise WorkerPoolOptions::$maxResultBytes',
            $refused->advice,
        );
        self::assertUsable($pool);
    }

    public function testASmallLimitAppliesToShortStrings(): void
    {
        $pool = $this->poolForResultsOf(100);
        self::assertSame(100, \strlen(self::textOf(self::outcome($pool->submit(new Call('bytes', 100))))));
        foreach ([101, 1023, 1024] as $bytes) {
            $refused = self::outcome($pool->submit(static fn(): string => str_repeat('x', $bytes)));

            self::assertInstanceOf(UnserializableException::class, $refused);
            self::assertStringContainsString("{$bytes} bytes long, more than the 100 of", $refused->what);
        }
        $text = static fn(int $count): string => str_repeat('x', $count);
        $lengths = array_map(
            static fn(MapOutcome $outcome): ?int => $outcome->succeeded() ? \strlen($outcome->value()) : null,
            iterator_to_array($pool->mapOutcomes([99, 101, 100], $text)),
        );

        self::assertSame([99, null, 100], $lengths);
    }

    public function testALargeListItemOrReportIsRefusedAsWell(): void
    {
        $pool = $this->poolForResultsOf(100_000);
        $list = self::outcome($pool->submit(static fn(): array => array_fill(0, 100_000, 1)));
        $report = self::outcome($pool->submit(new Call('report', 1, 200_000)));
        $items = self::outcome($pool->submit(static function (): \Generator {
            yield 1;
            yield str_repeat('x', 200_000);
        }));
        self::assertInstanceOf(\Generator::class, $items);
        self::assertSame(1, $items->current());
        try {
            $items->next();
            self::fail('The item arrived');
        } catch (UnserializableException $item) {
            self::assertStringStartsWith('The item', $item->path);
        }

        self::assertInstanceOf(UnserializableException::class, $list);
        self::assertInstanceOf(TaskFailedException::class, $report);
        self::assertSame(UnserializableException::class, $report->thrown->class);
        self::assertUsable($pool);
    }

    public function testALargeExceptionIsShortened(): void
    {
        $pool = $this->poolForResultsOf(100_000);
        $exception = self::outcome($pool->submit(static function (): never {
            throw new \DomainException('disk full ' . str_repeat('x', 1 << 20), 7, new \LogicException('first'));
        }));
        self::assertInstanceOf(TaskFailedException::class, $exception);
        $thrown = $exception->thrown;
        self::assertSame([\DomainException::class, 7], [$thrown->class, $thrown->code]);
        self::assertStringStartsWith('disk full xxx', $thrown->message);
        self::assertLessThan(10_000, \strlen($thrown->message));
        self::assertSame('first', $thrown->previous?->message);
        self::assertUsable($pool);
    }

    public function testOutputOfATaskIsNotLimited(): void
    {
        $size = 0;
        $pool = $this->poolForResultsOf(1, static function (string $bytes) use (&$size): void {
            $size += \strlen($bytes);
        });
        $outcome = self::outcome($pool->submit(static function (): int {
            echo str_repeat('x', 40 << 20);

            return 1;
        }));

        self::assertSame(1, $outcome);
        self::assertSame(40 << 20, $size);
    }

    private function poolForResultsOf(int $bytes, ?\Closure $onOutput = null): WorkerPool
    {
        return new WorkerPool(
            1,
            0,
            new WorkerPoolOptions(
                context: $this->context(),
                onOutput: $onOutput ?? static fn() => null,
                maxResultBytes: $bytes,
            ),
        );
    }

    private static function textOf(mixed $value): string
    {
        self::assertIsString($value, $value instanceof \Throwable ? $value->getMessage() : '');

        return $value;
    }
}
