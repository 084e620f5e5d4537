<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use Spindle\Command\TaskRunner;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

final class TaskRunnerTest extends TidyTestCase
{
    public function testEachTaskIsReportedOnceWithItsIdStatusAndOutputs(): void
    {
        $runner = new TaskRunner(4);
        for ($i = 0; $i < 50; ++$i) {
            $runner->add("task_{$i}", "echo {$i}; echo error {$i} >&2; exit " . $i % 3);
        }
        $results = $counts = [];
        $runner->runAndWait(
            static function (array $result, int $completed, int $total) use (&$results, &$counts): void {
                $results[] = $result;
                $counts[] = "{$completed}/{$total}";
            },
        );

        self::assertSame(array_map(static fn(int $i): string => "{$i}/50", range(1, 50)), $counts);
        self::assertCount(50, array_column($results, null, 'id'));
        foreach ($results as $result) {
            $i = Text::numbers($result['stdout'])[0];
            self::assertSame(
                ['id' => "task_{$i}", 'status' => $i % 3, 'stdout' => "{$i}\n", 'stderr' => "error {$i}\n"],
                $result,
            );
        }
    }

    public function testADeathBySignalIsAStatusAsInAShell(): void
    {
        $runner = new TaskRunner(2);
        foreach ([9, 15, 11] as $signal) {
            $runner->add($signal, "kill -{$signal} \$\$");
        }
        $runner->add(127, 'no-such-program-anywhere');
        $statuses = array_column(self::resultsOf($runner), 'status', 'id');
        ksort($statuses);

        self::assertSame([9 => 137, 11 => 139, 15 => 143, 127 => 127], $statuses);
    }

    public function testMoreOutputThanAPipeHoldsAndBinaryOutputArrive(): void
    {
        $runner = new TaskRunner(2);
        $runner->add('large', 'head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2');
        $runner->add("\xFF\0", 'printf "\377\376\000\n"');
        $results = array_column(self::resultsOf($runner), null, 'id');

        self::assertTrue($results['large']['stdout'] === str_repeat("\0", 300_000));
        self::assertTrue($results['large']['stderr'] === str_repeat("\0", 300_000));
        self::assertSame("\xFF\xFE\0\n", $results["\xFF\0"]['stdout']);
    }

    public function testIdsOfAnyTypeComeBack(): void
    {
        $ids = [7, '7', 1.5, null, true, ['a' => [1, 2]]];
        $runner = new TaskRunner(1);
        foreach ($ids as $id) {
            $runner->add($id, 'true');
        }

        self::assertSame($ids, array_column(self::resultsOf($runner), 'id'));
    }

    public function testMoreTasksThanStayInMemoryAllRun(): void
    {
        $runner = new TaskRunner(4);
        for ($i = 0; $i < 30; ++$i) {
            $runner->add($i, "echo {$i} # " . str_repeat('x', 100_000 + $i));
        }
        $outputs = array_column(self::resultsOf($runner), 'stdout', 'id');
        ksort($outputs);

        self::assertSame(range(0, 29), array_map(intval(...), $outputs));
    }

    public function testARunnerCanBeUsedAgain(): void
    {
        $runner = new TaskRunner(2);
        $totals = [];
        for ($round = 1; $round <= 3; ++$round) {
            for ($i = 0; $i < $round; ++$i) {
                $runner->add($i, 'true');
            }
            $runner->runAndWait(static function (array $result, int $completed, int $total) use (&$totals): void {
                $totals[] = "{$completed}/{$total}";
            });
        }
        $runner->runAndWait(static fn() => self::fail('There are no tasks'));

        self::assertSame(['1/1', '1/2', '2/2', '1/3', '2/3', '3/3'], $totals);
    }

    public function testTheCallbackIsOptional(): void
    {
        $file = sys_get_temp_dir() . '/spindle-test-' . bin2hex(random_bytes(6));
        $runner = new TaskRunner(2);
        $runner->add(1, "touch {$file}");
        $runner->runAndWait();

        self::assertFileExists($file);
        unlink($file);
    }

    public function testACallbackThatThrowsEndsTheRunAndTheRunnerStaysUsable(): void
    {
        $runner = new TaskRunner(2);
        $runner->add(1, 'true');
        $runner->add(2, 'sleep 20');
        try {
            $runner->runAndWait(static fn() => throw new \DomainException());
            self::fail('The exception is lost');
        } catch (\DomainException) {
            $runner->add(3, 'true');
            self::assertSame([3], array_column(self::resultsOf($runner), 'id'));
        }
    }

    public function testATaskAddedByTheCallbackIsRefused(): void
    {
        $runner = new TaskRunner(1);
        $runner->add(1, 'true');
        $this->expectException(\LogicException::class);
        $runner->runAndWait(static fn() => $runner->add(2, 'true'));
    }

    public function testTheOriginalNameIsFound(): void
    {
        self::assertTrue(class_exists('TaskRunner\TaskRunner'));
        self::assertSame(TaskRunner::class, (new \ReflectionClass('TaskRunner\TaskRunner'))->getName());
    }

    /** @return list<array{id: mixed, status: int, stdout: string, stderr: string}> */
    private static function resultsOf(TaskRunner $runner): array
    {
        $results = [];
        $runner->runAndWait(static function (array $result) use (&$results): void {
            $results[] = $result;
        });

        return $results;
    }
}
