<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Input;

use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Input\Packing;
use Spindle\Cli\Internal\Run\Input\RecordSplitter;
use Spindle\Cli\Internal\Run\Input\TextPacking;
use Spindle\Cli\Internal\UsageException;
use Spindle\Tests\Scale;

final class TextPackingTest extends TestCase
{
    public function testTheJobsAreThoseOfRecordsThatArePackedOneByOne(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $errors = 0;
        for ($round = 0; $round < 3000; ++$round) {
            $records = [];
            for ($i = $random->getInt(0, 60); $i > 0; --$i) {
                $records[] = str_repeat('x', $random->getInt(0, $random->getInt(0, 12)));
            }
            $limit = $random->getInt(20, 400);
            $packing = new Packing(
                $random->getInt(0, 2) === 0 ? $random->getInt(1, 20) : null,
                $random->getInt(8, $limit),
                $limit,
                isSpread: $random->getInt(0, 1) === 0,
                isLimited: $random->getInt(0, 1) === 0,
            );
            $words = $random->getInt(0, 1) === 0 ? ['echo', 'a', '{}'] : ['e', '{}', '{#}', 'end'];
            $jobs = $random->getInt(1, 5);
            $size = $random->getInt(1, 40);

            $expected = self::packed($packing, $words, $records, $jobs);
            self::assertSame($expected, self::packedText($packing, $words, $records, $jobs, $size), "Round {$round}");
            $errors += (int) \is_string(end($expected));
        }
        self::assertGreaterThan(10, $errors, 'Some records are too long');
    }

    public function testTheSystemsLimitCountsAPointerForEachRecord(): void
    {
        $packing = new Packing(null, 1000, 1000, isSpread: false, isLimited: false);
        $jobs = self::packedText($packing, ['x', '{}'], array_fill(0, 200, 'a'), 1, 50);

        // The program has 2 bytes and a pointer of 8 bytes; each record has the same.
        self::assertSame([99, 99, 2], array_map(static fn(mixed $job): int => \count((array) $job), $jobs));
    }

    /**
     * @param non-empty-list<string> $words
     * @param list<string>           $records
     *
     * @return list<list<string>|string> the values of each job, and the message of the exception
     */
    private static function packed(Packing $packing, array $words, array $records, int $jobs): array
    {
        $rows = (static function () use ($records): \Generator {
            foreach ($records as $record) {
                yield [$record];
            }
        })();

        return self::values($packing->jobs($rows, self::format($words), static fn(): int => $jobs));
    }

    /**
     * @param non-empty-list<string> $words
     * @param list<string>           $records
     * @param positive-int           $size bytes that are read at once
     *
     * @return list<list<string>|string>
     */
    private static function packedText(Packing $packing, array $words, array $records, int $jobs, int $size): array
    {
        $texts = (static function () use ($records, $size): \Generator {
            $splitter = new RecordSplitter("\n");
            foreach (str_split(implode("\n", [...$records, '']), $size) as $bytes) {
                yield $splitter->pushText($bytes);
            }
        })();
        $text = new TextPacking($packing, "\n", self::format($words));

        return self::values($text->jobs($texts, static fn(): int => $jobs));
    }

    /** @param non-empty-list<string> $words */
    private static function format(array $words): CommandTemplate
    {
        $format = CommandTemplate::fromWords($words, hasSeveralValues: true);
        self::assertTrue($format->addsRecordsUnchanged());

        return $format;
    }

    /**
     * @param \Generator<int, JobValues> $jobs
     *
     * @return list<list<string>|string>
     */
    private static function values(\Generator $jobs): array
    {
        $values = [];
        try {
            foreach ($jobs as $job) {
                $values[] = $job->list();
            }
        } catch (UsageException $error) {
            $values[] = $error->getMessage();
        }

        return $values;
    }
}
