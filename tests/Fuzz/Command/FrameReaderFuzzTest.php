<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Command;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\FrameReader;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Internal\MalformedFrameException;
use Spindle\Tests\Scale;

final class FrameReaderFuzzTest extends TestCase
{
    private const LONGEST = 50_000;

    public function testAnySplitOfTheBytesGivesTheSameFrames(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.3) as $_) {
            [$bytes, $frames] = self::frames();
            foreach ([1, 3, 12, 1000, 70_000, \strlen($bytes) + 1] as $longest) {
                self::assertSame($frames, self::read(Splits::random($bytes, $longest)));
            }
        }
    }

    public function testWhatIsTornComesOnceItIsWhole(): void
    {
        mt_srand(Scale::seed());
        [$bytes, $frames] = self::frames();
        for ($size = \strlen($bytes), $at = max(0, $size - 100); $at < $size; ++$at) {
            $whole = self::read([substr($bytes, 0, $at)]);
            self::assertSame(\array_slice($frames, 0, \count($whole)), $whole);
            self::assertLessThan(\count($frames), \count($whole));
            self::assertSame($frames, self::read([substr($bytes, 0, $at), '', substr($bytes, $at)]));
        }
    }

    #[TestWith([0])]
    #[TestWith([4])]
    #[TestWith([self::LONGEST + 1])]
    #[TestWith([0xFFFFFFFF])]
    public function testALengthThatNoFrameHasIsRefusedHoweverItArrives(int $length): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.05) as $_) {
            [$bytes, $frames] = self::frames();
            $malformed = pack('V', $length) . 'HTTP/1.1 400 Bad Request';
            foreach ([1, 12, 70_000] as $longest) {
                $seen = [];
                try {
                    self::read(Splits::random($bytes . $malformed, $longest), $seen);
                    self::fail('Taken for a frame');
                } catch (MalformedFrameException $exception) {
                    self::assertStringStartsWith('it wrote bytes that are not a frame: "', $exception->getMessage());
                    self::assertSame($frames, $seen);
                }
            }
        }
    }

    public function testAnUnknownTypeIsRefusedBeforeTheFrameIsComplete(): void
    {
        $seen = [];
        $handler = new EachFrame(static function (array $frame) use (&$seen): void {
            $seen[] = $frame;
        });
        $reader = new FrameReader(maxType: 7);
        $reader->feed(LauncherProtocol::frame(7, 1, 'last') . pack('V', 1_000_000), $handler);
        self::assertSame([[7, 1, 'last']], $seen);
        self::assertFalse($reader->isEmpty());

        $this->expectException(MalformedFrameException::class);
        $reader->feed(pack('CV', 8, 1), $handler);
    }

    public function testTheLongestAndTheShortestFrameAreFrames(): void
    {
        $frames = [[1, 0xFFFFFFFF, ''], [255, 0, str_repeat('x', self::LONGEST - 5)]];

        self::assertSame(
            $frames,
            self::read([LauncherProtocol::frame(...$frames[0]) . LauncherProtocol::frame(...$frames[1])]),
        );
    }

    public function testNothingIsLostAndNothingOvertakesWhenAHandlerThrowsOrFeedsTheReader(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.3) as $_) {
            [$bytes, $frames] = self::frames();
            $pieces = Splits::random($bytes, 1000);
            $seen = [];
            $reader = new FrameReader(self::LONGEST);
            $handler = new EachFrame(static function (array $frame) use (&$seen, &$handler, $reader, &$pieces): void {
                $seen[] = $frame;
                match (mt_rand(0, 2)) {
                    0 => $reader->feed((string) array_shift($pieces), $handler),
                    1 => throw new \RuntimeException('of the handler'),
                    default => null,
                };
            });
            for ($left = 2 * \count($pieces) + \count($frames); $left > 0; --$left) {
                try {
                    $reader->feed((string) array_shift($pieces), $handler);
                } catch (\RuntimeException) {
                    continue;
                }
            }
            self::assertSame($frames, $seen);
        }
    }

    public function testThePiecesOfALongFrameAreNotCopiedAgainAndAgain(): void
    {
        $length = 0;
        $reader = new FrameReader();
        $handler = new EachFrame(static function (array $frame) use (&$length): void {
            $length = \strlen($frame[2]);
        });
        $piece = str_repeat('x', 500);
        $reader->feed(pack('VCV', 5 + 16_000_000, 1, 1), $handler);
        $began = hrtime(true);
        for ($i = 0; $i < 32_000; ++$i) {
            $reader->feed($piece, $handler);
        }

        self::assertSame(16_000_000, $length);
        self::assertLessThan(5.0, (hrtime(true) - $began) / 1e9, 'it takes some 0.02 s');
    }

    /** @return array{string, list<array{int, int, string}>} bytes, and the type, job and payload of each frame */
    private static function frames(): array
    {
        $bytes = '';
        $frames = [];
        for ($i = mt_rand(1, 12); $i > 0; --$i) {
            $payload = Splits::bytes([0, mt_rand(0, 50), mt_rand(0, 3000)][mt_rand(0, 2)]);
            $frames[] = $frame = [
                mt_rand(0, 255),
                mt_rand(0, 0xFFFFFFFF),
                mt_rand(0, 30) === 0 ? str_repeat('y', 40_000) : $payload,
            ];
            $bytes .= LauncherProtocol::frame(...$frame);
        }

        return [$bytes, $frames];
    }

    /**
     * @param list<string>                    $pieces
     * @param list<array{int, int, string}> $seen   type, job and payload of each frame, filled even if it throws
     *
     * @return list<array{int, int, string}>
     */
    private static function read(array $pieces, array &$seen = []): array
    {
        $reader = new FrameReader(self::LONGEST);
        $handler = new EachFrame(static function (array $frame) use (&$seen): void {
            $seen[] = $frame;
        });
        foreach ($pieces as $piece) {
            $reader->feed($piece, $handler);
        }

        return $seen;
    }
}
