<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Remote\AttachResult;
use Spindle\Remote\Delivery;
use Spindle\Remote\Internal\Redis\Codec;
use Spindle\Remote\Internal\Redis\MalformedAnswerException;
use Spindle\Remote\Job;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\SubmitResult;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\TidyTestCase;

/** The scripts use struct.pack and struct.unpack of Lua; comments show the formats. */
final class CodecTest extends TidyTestCase
{
    use CatchesThrown;

    private const BYTES = "\0\xff\r\n";

    public function testJobsAreReadAsTheyWere(): void
    {
        $long = str_repeat('~', 128);
        $packed = Codec::encodeJobs(
            [
                new Job('id', self::BYTES, "\0key", 1.2345),
                new Job($long, '', $long, 31_622_400.0),
                new Job('plain', str_repeat('x', 70_000)),
            ],
        );

        // <Bc0Bc0dI4c0
        self::assertSame(
            self::named('id') . self::named("\0key") . pack('e', 1235) . self::string(self::BYTES)
            . self::named($long) . self::named($long) . pack('e', 31_622_400_000) . self::string('')
            . self::named('plain') . self::named('') . pack('e', 0) . self::string(str_repeat('x', 70_000)),
            $packed,
        );
        self::assertSame('', Codec::encodeJobs([]));
    }

    public function testSettlementsAreReadAsTheyWere(): void
    {
        $settlements = array_map(
            static fn(SettlementKind $kind): Settlement
                => new Settlement('id', 7, $kind, 2, 3, 0.25, self::BYTES, '{"reason":1}'),
            SettlementKind::cases(),
        );
        $expected = '';
        foreach ([1, 2, 3, 4, 5, 6, 7, 8] as $kind) {
            // <Bc0I4BI4I4dI4c0I4c0
            $expected .= self::named('id')
                . pack('VCVVe', 7, $kind, 2, 3, 250)
                . self::string(self::BYTES)
                . self::string('{"reason":1}');
        }

        self::assertSame($expected, Codec::encodeSettlements($settlements));
    }

    public function testALongDelayIsNotCut(): void
    {
        self::assertStringContainsString(
            pack('e', 1e11),
            Codec::encodeSettlements([new Settlement('id', 1, SettlementKind::Retry, delay: 1e8)]),
        );
    }

    public function testIdsComeBackAndWhatFollowsThemIsLeft(): void
    {
        $ids = ['a', str_repeat('~', 128), 'c'];
        $at = 0;

        self::assertSame($ids, Codec::decodeIds(pack('V', 3) . Codec::encodeIds($ids) . 'rest', $at));
        self::assertSame(4 + 2 + 129 + 2, $at);
        $at = 0;
        self::assertSame([], Codec::decodeIds(pack('V', 0), $at));
    }

    public function testDeliveriesComeBackWithTheirFlags(): void
    {
        $expected = [];
        $packed = '';
        foreach ([...range(0, 7), 64, 129, 198] as $flags) {
            $frame = str_repeat(self::BYTES, $flags);
            // <Bc0I4I4I4BI4I4I4c0
            $packed .= self::named("job-{$flags}")
                . pack('VVVCVV', 0xffffffff, 2, 3, $flags, 7, 1500)
                . self::string($frame);
            $expected[] = new Delivery(
                "job-{$flags}",
                0xffffffff,
                2,
                3,
                ($flags & 1) !== 0,
                ($flags & 2) !== 0,
                ($flags & 4) !== 0,
                $frame,
                0,
                intdiv($flags, 64),
                7,
                1.5,
            );
        }

        self::assertEquals($expected, Codec::decodeDeliveries("before{$packed}", 6));
        self::assertSame([], Codec::decodeDeliveries('', 0));
    }

    public function testStringsComeBack(): void
    {
        $strings = ['', self::BYTES, str_repeat('x', 70_000)];

        self::assertSame($strings, Codec::decodeStrings(implode('', array_map(self::string(...), $strings))));
        self::assertSame([], Codec::decodeStrings(''));
    }

    public function testStatesComeBackByTheIdsThatWereAskedFor(): void
    {
        $packed = pack('CV', 0, 0)
            . pack('CV', 1, 0)
            . pack('C', 2)
            . self::string(self::BYTES)
            . pack('C', 2)
            . self::string('')
            . pack('CV', 3, 0);

        self::assertEquals(
            [
                'a' => new AttachResult(false, null, false),
                'b' => new AttachResult(true, null, false),
                'c' => new AttachResult(true, self::BYTES, true),
                'd' => new AttachResult(true, '', true),
                'e' => new AttachResult(true, null, true),
            ],
            Codec::decodeAttachResults($packed, ['a', 'b', 'c', 'd', 'e']),
        );
    }

    public function testLettersComeBack(): void
    {
        $pairs = self::named('a') . self::string(self::BYTES) . self::named('b') . self::string('');
        $both = ['a' => self::BYTES, 'b' => ''];

        self::assertEquals(new MailboxMessage(jobsAvailable: true), Codec::decodeMessage('w'));
        self::assertEquals(new MailboxMessage(outcomes: $both), Codec::decodeMessage("r{$pairs}"));
        self::assertEquals(
            new MailboxMessage(cancelled: ['a' => 0xffffffff]),
            Codec::decodeMessage('c' . self::named('a') . pack('V', 0xffffffff)),
        );
        self::assertEquals(
            new MailboxMessage(lostAgents: ['a' => 2]),
            Codec::decodeMessage('l' . self::named('a') . pack('V', 2)),
        );
        self::assertEquals(new MailboxMessage(items: ['a']), Codec::decodeMessage('i' . self::named('a')));
        self::assertEquals(new MailboxMessage(taken: ['a']), Codec::decodeMessage('t' . self::named('a')));
        self::assertEquals(new MailboxMessage(reports: $both), Codec::decodeMessage("p{$pairs}"));
    }

    public function testALetterOfALaterVersionIsLeftAlone(): void
    {
        self::assertNull(Codec::decodeMessage('z' . self::named('a')));
        self::assertNull(Codec::decodeMessage(''));
    }

    /** @param \Closure(string): mixed $decode */
    #[DataProvider('decoders')]
    public function testAnAnswerWithoutItsEndIsMalformed(string $answer, \Closure $decode): void
    {
        self::assertNotEmpty($decode($answer));
        for ($size = \strlen($answer) - 1; $size > 0; --$size) {
            self::thrown(MalformedAnswerException::class, static fn() => $decode(substr($answer, 0, $size)));
        }
    }

    /** @return iterable<string, array{string, \Closure(string): mixed}> */
    public static function decoders(): iterable
    {
        $string = self::named('id') . self::string('frame');
        yield 'ids' => [pack('V', 1) . self::named('id'), Codec::decodeIds(...)];
        yield 'strings' => [self::string('text'), Codec::decodeStrings(...)];
        yield 'deliveries' => [
            self::named('id') . pack('VVVCVV', 1, 2, 3, 0, 0, 0) . self::string('frame'),
            static fn(string $answer): array => Codec::decodeDeliveries($answer, 0),
        ];
        yield 'states' => [
            "\2" . self::string('outcome'),
            static fn(string $answer): array => Codec::decodeAttachResults($answer, ['id']),
        ];
        yield 'details' => [$string, Codec::decodeDetails(...)];
        yield 'a cancellation' => ['c' . self::named('id') . pack('V', 1), Codec::decodeMessage(...)];
        yield 'a due time' => ['d' . pack('V', 1), Codec::decodeMessage(...)];
        yield 'an item' => ['i' . self::named('id'), Codec::decodeMessage(...)];
    }

    #[TestWith(['', 1])]
    #[TestWith(['x', 1])]
    #[TestWith(['-1', 1])]
    #[TestWith(['2', 1])]
    #[TestWith(['1 2', 1])]
    #[TestWith(['1 ', 1])]
    public function testASubmitResultOutsideItsJobsIsMalformed(string $answer, int $jobCount): void
    {
        self::assertEquals(new SubmitResult(3, [0, 2]), Codec::decodeSubmitResult('3 0 2', 3));
        $this->expectException(MalformedAnswerException::class);
        Codec::decodeSubmitResult($answer, $jobCount);
    }

    public function testDetailsOfJobsAreDecoded(): void
    {
        $packed = self::named('a')
            . self::string('{"owner":"o","since":1700000000123,"share":0.5}')
            . self::named('b')
            . self::string('{}');

        self::assertSame(
            ['a' => ['owner' => 'o', 'since' => 1_700_000_000_123, 'share' => 0.5], 'b' => []],
            Codec::decodeDetails($packed),
        );
    }

    /** Bc0 */
    private static function named(string $name): string
    {
        return \chr(\strlen($name)) . $name;
    }

    /** I4c0 */
    private static function string(string $bytes): string
    {
        return pack('V', \strlen($bytes)) . $bytes;
    }
}
