<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Output\OutputOrder;
use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Unit\Cli\Run\Outcome;

final class OutputOrderTest extends TestCase
{
    public function testResultsComeInTheOrderOfTheJobsWhateverEndsFirst(): void
    {
        $order = new OutputOrder();
        $jobs = self::expect($order, [2, 3, 5, 9]);

        self::assertSame([], self::give($order->add($jobs[3], Outcome::result())));
        self::assertSame([2, 3], self::give($order->add($jobs[2], Outcome::result())));
        self::assertSame([], self::give($order->add($jobs[9], Outcome::result())));
        self::assertSame([5, 9], self::give($order->add($jobs[5], Outcome::result())));
    }

    public function testAFewLargeEarlyJobsFillTheOrderUntilTheyAreYielded(): void
    {
        $order = new OutputOrder();
        $large = str_repeat('x', 4 << 20);
        $jobs = array_map(
            static fn(int $number): InputJob => new InputJob($number, JobValues::of([$large]), Command::of('true')),
            range(0, 2),
        );
        array_map($order->expect(...), $jobs);
        self::assertSame([], self::give($order->add($jobs[1], Outcome::result())));
        self::assertFalse($order->isFull());
        self::assertSame([], self::give($order->add($jobs[2], null)));
        self::assertTrue($order->isFull());
        self::assertSame([0, 1], self::give($order->add($jobs[0], Outcome::result())));

        self::assertFalse($order->isFull());
    }

    public function testAJobWithoutAResultDelaysNoOtherResult(): void
    {
        $order = new OutputOrder();
        $jobs = self::expect($order, [1, 2, 3]);

        self::assertSame([], self::give($order->add($jobs[2], Outcome::result())));
        self::assertSame([2], self::give($order->add($jobs[1], null)));
        self::assertSame([3], self::give($order->add($jobs[3], Outcome::result())));
    }

    public function testEarlyResultsAreYieldedWhenEarlierJobsNeverFinish(): void
    {
        $order = new OutputOrder();
        $jobs = self::expect($order, [1, 2, 3, 4]);
        self::assertSame([], self::give($order->add($jobs[4], Outcome::result())));
        self::assertSame([], self::give($order->add($jobs[2], Outcome::result())));

        self::assertSame([2, 4], self::give($order->remaining()));
        self::assertSame([], self::give($order->remaining()));
    }

    public function testAThousandEarlyResultsFillTheOrderUntilTheFirstJobFinishes(): void
    {
        $order = new OutputOrder();
        $jobs = self::expect($order, range(1, 1001));
        for ($sequence = 2; $sequence <= 1001; ++$sequence) {
            self::assertFalse($order->isFull());
            self::assertSame([], self::give($order->add($jobs[$sequence], Outcome::result())));
        }
        self::assertTrue($order->isFull());

        self::assertCount(1001, self::give($order->add($jobs[1], Outcome::result())));
        self::assertFalse($order->isFull());
    }

    /**
     * @param array<int> $sequences
     *
     * @return array<int, InputJob>
     */
    private static function expect(OutputOrder $order, array $sequences): array
    {
        $jobs = [];
        foreach ($sequences as $sequence) {
            $order->expect($jobs[$sequence] = Outcome::job($sequence));
        }

        return $jobs;
    }

    /**
     * @param \Generator<InputJob, CommandResult> $results
     *
     * @return list<int>
     */
    private static function give(\Generator $results): array
    {
        $sequences = [];
        foreach ($results as $job => $_) {
            $sequences[] = $job->sequence;
        }

        return $sequences;
    }
}
