<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Remote\Job;
use Spindle\Tests\TidyTestCase;

final class JobTest extends TidyTestCase
{
    public function testAJobIsWhatItWasMadeOf(): void
    {
        $job = new Job('id', "\0frame", "\0key", 1.5);

        self::assertSame(['id', "\0frame", "\0key", 1.5], [$job->id, $job->frame, $job->exclusiveKey, $job->delay]);
        self::assertSame(['', 0.0], [(new Job('id', ''))->exclusiveKey, (new Job('id', ''))->delay]);
    }

    #[DataProvider('ids')]
    public function testAnIdIsPrintable(string $id): void
    {
        self::assertSame($id, (new Job($id, 'frame'))->id);
    }

    /** @return iterable<array{string}> */
    public static function ids(): iterable
    {
        yield from [['a'], ['1a'], ['-'], ['1-1'], ['1.0'], ['+1'], ['{a}:*?'], [str_repeat('~', 128)], ["!\"'\\"]];
    }

    public function testIdsOfDigitsAreStoredAsOthersThanAnyOtherId(): void
    {
        $ids = ['7', '-7', '#7', '##7', '#-7', '7#', '#a', '#'];
        $stored = array_map(Job::storedId(...), $ids);

        self::assertSame($ids, array_map(Job::givenId(...), $stored));
        self::assertSame($stored, array_unique($stored));
        self::assertSame(['#7', '#-7', '##7'], \array_slice($stored, 0, 3));
    }

    #[DataProvider('others')]
    public function testAnInvalidIdIsRefused(string $id, string $shown): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The id of a job must have 1 to 128 printable ASCII characters without spaces, not '
                . $shown,
        );
        new Job($id, 'frame');
    }

    /** @return iterable<array{string, string}> */
    public static function others(): iterable
    {
        yield from [
            ['', '""'],
            [str_repeat('a', 129), '129 bytes'],
            ['a b', '"a b"'],
            ["a\n", '"a\n"'],
            ["a\0", '"a\u0000"'],
            ["caf\u{e9}", '"caf\u00e9"'],
            ["\x7f", "\"\x7f\""],
        ];
    }

    #[TestWith(['1'])]
    #[TestWith(['-1'])]
    public function testNoJobIsStoredUnderAnInteger(string $id): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("A broker stores no job under an integer such as {$id}. RemoteExecutor adds a #");
        new Job($id, 'frame');
    }

    public function testAKeyIsAnyBytesButNotTooMany(): void
    {
        self::assertSame(128, \strlen((new Job('id', 'frame', str_repeat("\0", 128)))->exclusiveKey));

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage('The exclusive key of a job must have at most 128 bytes');
        new Job('id', 'frame', str_repeat('a', 129));
    }

    #[DataProvider('delays')]
    public function testADelayOutOfItsRangeIsRefused(float $delay): void
    {
        self::assertSame(31_622_400.0, (new Job('id', 'frame', delay: 31_622_400.0))->delay);

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The delay of a job must be from 0 to 31,622,400 seconds (366 days), not ',
        );
        new Job('id', 'frame', delay: $delay);
    }

    /** @return iterable<array{float}> */
    public static function delays(): iterable
    {
        yield from [[-0.001], [31_622_401.0], [\INF], [\NAN]];
    }

    public function testAnIdOfDigitsIsStoredAsOneThatIsNoIntegerInPhp(): void
    {
        foreach (['12', '-7', '0', 'a-1', '#a'] as $id) {
            self::assertSame([Job::storedId($id)], array_keys([Job::storedId($id) => true]));
            self::assertSame($id, Job::givenId(Job::storedId($id)));
        }
        self::assertSame(['#12', 'a-1'], [Job::storedId('12'), Job::storedId('a-1')]);
    }
}
