<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Remote;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Remote\Internal\FrameKind;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\SigningKeys;
use Spindle\Tests\TidyTestCase;

final class FrameTest extends TidyTestCase
{
    #[DataProvider('bodies')]
    public function testABodyComesBackAsItWas(string $body): void
    {
        foreach (FrameKind::cases() as $kind) {
            foreach ([0, 1, 0xffffffff] as $number) {
                $frame = self::keys()->seal($kind, 'queue', 'id', $number, $body);
                self::assertTrue($body === self::keys()->open($kind, 'queue', 'id', $frame));
            }
        }
    }

    /** @return iterable<string, array{string}> */
    public static function bodies(): iterable
    {
        yield 'nothing' => [''];
        yield 'all bytes' => [implode('', array_map(\chr(...), range(0, 255)))];
        yield 'a megabyte' => [random_bytes(1 << 20)];
    }

    public function testABitFlippedAnywhereIsFoundOut(): void
    {
        $frame = self::seal();
        for ($bit = 0; $bit < \strlen($frame) * 8; ++$bit) {
            $flipped = $frame;
            $flipped[$bit >> 3] = \chr(\ord($frame[$bit >> 3]) ^ (1 << ($bit & 7)));
            self::assertRefused($flipped, "bit {$bit} is flipped");
        }
    }

    public function testAFrameThatIsCutOrLongerIsFoundOut(): void
    {
        $frame = self::seal();
        for ($length = 0; $length < \strlen($frame); ++$length) {
            self::assertRefused(substr($frame, 0, $length), "it has {$length} bytes");
        }
        self::assertRefused("{$frame}\0", 'it has a byte more');
        self::assertRefused("\0{$frame}", 'it has a byte before');
    }

    public function testAFrameIsThatOfItsJobItsQueueAndItsKindAlone(): void
    {
        $frame = self::seal();

        self::assertRefused($frame, 'it is of another job', id: 'je');
        self::assertRefused($frame, 'it is of another queue', queue: 'queuf');
        self::assertRefused($frame, 'it is of another kind', kind: FrameKind::Job);
        self::assertRefused($frame, 'what ends the queue begins the id', queue: 'queuei', id: 'd');
        self::assertRefused($frame, 'what begins the id ends the queue', queue: 'queu', id: 'eid');
        self::assertSame('body', self::keys()->open(FrameKind::Outcome, 'queue', 'id', $frame));
    }

    public function testAFrameIsThatOfItsClaimAlone(): void
    {
        $frame = self::seal();
        $other = substr_replace($frame, pack('V', 2), 2, 4);

        self::assertSame(pack('V', 1), substr($frame, 2, 4));
        self::assertRefused($other, 'it is of another claim');
    }

    public function testAnotherKeyOpensNothing(): void
    {
        $this->expectException(InvalidSignatureException::class);
        $this->expectExceptionMessage(
            'The outcome of the job id was refused: '
                . 'it is not signed for this job and queue with a key of this process\'s key file. '
                . 'Use the same key file for callers and agents',
        );
        (new SigningKeys([str_repeat('other', 8)]))->open(FrameKind::Outcome, 'queue', 'id', self::seal());
    }

    public function testAnotherKeyUnderTheSameNameOpensNothing(): void
    {
        $others = (new SigningKeys([str_repeat('other', 8)]))->seal(FrameKind::Outcome, 'queue', 'id', 1, 'body');

        self::assertRefused(
            substr_replace($others, substr(self::seal(), 6, 4), 6, 4),
            'it names a key that did not sign it',
        );
    }

    public function testEachOfSeveralKeysVerifiesItsOwnFrames(): void
    {
        $secrets = array_map(static fn(int $i): string => str_repeat("key {$i} ", 8), range(1, 5));
        $all = new SigningKeys($secrets);
        foreach ($secrets as $secret) {
            $frame = (new SigningKeys([$secret]))->seal(FrameKind::Job, 'queue', 'id', 0, 'body');
            self::assertSame('body', $all->open(FrameKind::Job, 'queue', 'id', $frame));
        }

        self::assertSame(
            (new SigningKeys([$secrets[0]]))->seal(FrameKind::Job, 'queue', 'id', 0, 'body'),
            $all->seal(FrameKind::Job, 'queue', 'id', 0, 'body'),
        );
    }

    public function testALaterVersionIsReportedAsSuch(): void
    {
        $frame = self::seal();
        $frame[0] = "\2";

        $this->expectException(InvalidSignatureException::class);
        $this->expectExceptionMessage('it has format version 2, and this process reads version 1');
        self::keys()->open(FrameKind::Outcome, 'queue', 'id', $frame);
    }

    private static function assertRefused(
        string $frame,
        string $why,
        FrameKind $kind = FrameKind::Outcome,
        string $queue = 'queue',
        string $id = 'id',
    ): void {
        try {
            self::keys()->open($kind, $queue, $id, $frame);
            self::fail("It is opened though {$why}");
        } catch (InvalidSignatureException $refused) {
            self::assertStringStartsWith("The {$kind->prefix()}job {$id} was refused: ", $refused->getMessage());
        }
    }

    private static function seal(): string
    {
        return self::keys()->seal(FrameKind::Outcome, 'queue', 'id', 1, 'body');
    }

    private static function keys(): SigningKeys
    {
        return new SigningKeys(['a key of this test, in full length']);
    }
}
