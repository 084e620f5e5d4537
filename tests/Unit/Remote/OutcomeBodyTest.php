<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Remote\Internal\OutcomeBody;
use Spindle\Remote\ResultTooLargeException;

final class OutcomeBodyTest extends TestCase
{
    /** Callers of older versions read the kind 4, ignore four bytes, and read the message. */
    #[TestWith([null])]
    #[TestWith([0])]
    #[TestWith([1])]
    #[TestWith([70_000])]
    public function testOlderCallersCanReadThatTheResultOfAGeneratorIsTooLarge(?int $itemCount): void
    {
        $tooLarge = ResultTooLargeException::of('job', 11, 10);
        $outcome = OutcomeBody::tooLarge($tooLarge, $itemCount);
        self::assertSame(4, \ord($outcome[0]));
        self::assertSame($tooLarge->getMessage(), substr($outcome, 5));
        self::assertSame($itemCount, OutcomeBody::itemCount($outcome));
        self::assertNull(OutcomeBody::itemCount(OutcomeBody::refused($tooLarge)));
        self::assertNull(OutcomeBody::itemCount(OutcomeBody::ofTask(3, null, 'result')));
        self::assertSame(5, OutcomeBody::itemCount(OutcomeBody::ofTask(3, 5, 'result')));

        $this->expectExceptionObject($tooLarge);
        OutcomeBody::read($outcome, null, 'job', 'queue');
    }
}
