<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Tests\CatchesThrown;

final class IterableStreamTest extends TestCase
{
    use CatchesThrown;

    /** @return iterable<string, array{iterable<string>, list<string>}> */
    public static function iterables(): iterable
    {
        yield 'an array' => [['ab', 'c'], ['ab', 'c', '']];
        yield 'an array with names' => [['x' => 'ab', 'y' => 'c'], ['ab', 'c', '']];
        yield 'a generator' => [(static fn(): \Generator => yield from ['ab', 'c'])(), ['ab', 'c', '']];
        yield 'an iterator' => [new \ArrayIterator(['ab', 'c']), ['ab', 'c', '']];
        yield 'an aggregate' => [self::aggregate(), ['ab', 'c', '']];
        yield 'an empty array' => [[], ['']];
        yield 'an empty generator' => [(static fn(): \Generator => yield from [])(), ['']];
        yield 'nothing but empty chunks' => [['', '', ''], ['']];
        yield 'empty chunks between others' => [['', 'ab', '', '', 'c', ''], ['ab', 'c', '']];
        yield 'a zero' => [['0', '', '0'], ['0', '0', '']];
        yield 'longer ones' => [
            [str_repeat('x', 250), 'y'],
            [str_repeat('x', 100), str_repeat('x', 100), str_repeat('x', 50), 'y', ''],
        ];
    }

    /**
     * @param iterable<string> $chunks
     * @param list<string>     $pieces
     */
    #[DataProvider('iterables')]
    public function testEachReadReturnsAtMostOnePiece(iterable $chunks, array $pieces): void
    {
        $stream = new IterableStream($chunks);
        self::assertFalse($stream->eof(), 'Nobody has looked whether there is anything');
        $read = [];
        $position = 0;
        while (!$stream->eof()) {
            $read[] = $piece = $stream->read(100);
            self::assertSame($position += \strlen($piece), $stream->tell());
        }

        self::assertSame([$pieces, ''], [$read, $stream->read(100)]);
    }

    public function testPiecesAreJoinedAsFarAsTheyFit(): void
    {
        $pieces = ['ab', 'c', '', str_repeat('d', 16_381), 'efg', 'h', str_repeat('i', 16_384), 'j'];
        $stream = new IterableStream($pieces);
        $read = [];
        $position = 0;
        while (!$stream->eof()) {
            $read[] = $piece = $stream->readJoined(65_536, \PHP_INT_MAX);
            self::assertSame($position += \strlen($piece), $stream->tell());
        }

        self::assertSame(['abc', "{$pieces[3]}efg", 'h', $pieces[6], 'j'], $read);
    }

    public function testNoMoreBytesAreJoinedThanRequested(): void
    {
        $asked = 0;
        $pieces = static function () use (&$asked): \Generator {
            for (; ; ++$asked) {
                yield 'ab';
            }
        };
        $stream = new IterableStream($pieces());

        self::assertSame(['abab', 1], [$stream->readJoined(4, \PHP_INT_MAX), $asked]);
        self::assertSame(['a', 2], [$stream->readJoined(1, \PHP_INT_MAX), $asked]);
        self::assertSame(['b', 3], [$stream->readJoined(2, \PHP_INT_MAX), $asked], 'the next piece does not fit');
    }

    public function testWithoutTimePiecesAreNotJoined(): void
    {
        $stream = new IterableStream(['a', 'b', 'c']);

        self::assertSame(['a', 'b'], [$stream->readJoined(100, 0), $stream->readJoined(100, 0)]);
    }

    public function testJoinedPiecesCanBeTakenWhileTheIteratorWaits(): void
    {
        $stream = new IterableStream((static function (): \Generator {
            yield from ['a', 'b'];
            \Fiber::suspend();
            yield from ['c', 'd'];
        })());
        $read = new \Fiber(static fn(): string => $stream->readJoined(100, \PHP_INT_MAX));
        $read->start();

        self::assertSame(['ab', ''], [$stream->takeJoined(), $stream->takeJoined()]);
        $read->resume();
        self::assertSame('c', $read->getReturn(), 'what is read after the wait does not wait again');
        self::assertSame(['d', true], [$stream->readJoined(100, \PHP_INT_MAX), $stream->eof()]);
        self::assertSame(4, $stream->tell());
    }

    public function testAPieceAfterAWaitIsNotJoined(): void
    {
        $stream = new IterableStream((static function (): \Generator {
            \Fiber::suspend();
            yield 'a';
            \Fiber::suspend();
            yield 'b';
        })());
        $read = new \Fiber(static fn(): string => $stream->readJoined(100, \PHP_INT_MAX));
        $read->start();
        self::assertSame('', $stream->takeJoined());
        $read->resume();

        self::assertSame('a', $read->getReturn(), 'nothing would take it during the next wait');
    }

    public function testTheEndMayFollowJoinedPiecesThatWereTaken(): void
    {
        $stream = new IterableStream((static function (): \Generator {
            yield from ['a', 'b'];
            \Fiber::suspend();
        })());
        $read = new \Fiber(static fn(): string => $stream->readJoined(100, \PHP_INT_MAX));
        $read->start();
        self::assertSame('ab', $stream->takeJoined());
        $read->resume();

        self::assertSame(['', true], [$read->getReturn(), $stream->eof()]);
    }

    public function testJoinedPiecesAreDroppedWhenTheStreamIsClosed(): void
    {
        $ended = false;
        $stream = new IterableStream((static function () use (&$ended): \Generator {
            try {
                yield from ['a', 'b'];
                \Fiber::suspend();
                yield 'c';
            } finally {
                $ended = true;
            }
        })());
        $read = new \Fiber(static fn(): string => $stream->readJoined(100, \PHP_INT_MAX));
        $read->start();
        $stream->close();
        $read->resume();

        self::assertSame(['', '', true], [$stream->takeJoined(), $read->getReturn(), $ended]);
    }

    public function testAReadDuringAReadOfAnotherFiberHasNoEffect(): void
    {
        $ended = false;
        $stream = new IterableStream((static function () use (&$ended): \Generator {
            try {
                yield 'a';
                \Fiber::suspend();
                yield 'b';
            } finally {
                $ended = true;
            }
        })());
        $read = new \Fiber(static fn(): string => $stream->readJoined(100, \PHP_INT_MAX));
        $read->start();
        $failure = null;
        try {
            $stream->read(100);
        } catch (\Throwable $failure) {
        }
        self::assertInstanceOf(\LogicException::class, $failure);
        $stream->close();
        $read->resume();

        self::assertSame(['', true], [$read->getReturn(), $ended]);
    }

    public function testPiecesBeforeAnExceptionAreKept(): void
    {
        $stream = new IterableStream((static function (): \Generator {
            yield from ['a', 'b'];
            throw new \RuntimeException('No more rows');
        })());
        $failure = self::thrown(\RuntimeException::class, static fn() => $stream->readJoined(100, \PHP_INT_MAX));
        self::assertSame(['No more rows', 'ab'], [$failure->getMessage(), $stream->takeJoined()]);
    }

    public function testAPieceThatIsNotAStringIsReported(): void
    {
        /** @var iterable<string> $pieces */
        $pieces = unserialize(serialize(['a', 1]));
        $stream = new IterableStream($pieces);

        self::assertSame('a', $stream->read(100));
        $this->expectExceptionMessage('A piece of a body has the type int instead of string. Yield (string) $value');
        $stream->read(100);
    }

    public function testAPieceIsRequestedOnlyWhenItIsRead(): void
    {
        /** @var \ArrayObject<int, string> $asked */
        $asked = new \ArrayObject();
        $stream = new IterableStream((static function () use ($asked): \Generator {
            foreach (['a', 'b'] as $chunk) {
                $asked[] = $chunk;
                yield $chunk;
            }
        })());
        self::assertCount(0, $asked);
        $stream->read(100);

        self::assertSame(['a'], $asked->getArrayCopy());
    }

    public function testManyEmptyPiecesAreSkippedBySeveralReads(): void
    {
        $asked = 0;
        $stream = new IterableStream((static function () use (&$asked): \Generator {
            for (; $asked < 1050; ++$asked) {
                yield '';
            }
            yield 'end';
        })());
        for ($read = 1; $read <= 10; ++$read) {
            self::assertSame('', $stream->read(100));
            self::assertFalse($stream->eof());
            self::assertLessThanOrEqual($read * 100, $asked);
        }

        self::assertSame('end', $stream->read(100));
    }

    public function testContentsSkipEmptyPieces(): void
    {
        $chunks = ['begin', ...array_fill(0, 1000, ''), 'end'];

        self::assertSame('beginend', (new IterableStream($chunks))->getContents());
        self::assertSame('beginend', (string) new IterableStream($chunks));
    }

    public function testALongPieceIsReadInShortPartsWithoutACopyEachTime(): void
    {
        $stream = new IterableStream([str_repeat('x', 64 << 20)]);
        $begun = hrtime(true);
        $bytes = 0;
        while (!$stream->eof()) {
            $bytes += \strlen($stream->read(16_384));
        }

        self::assertSame(64 << 20, $bytes);
        self::assertLessThan(2.0, (hrtime(true) - $begun) / 1e9, 'the rest copied for each piece takes more than ten');
    }

    public function testClosingEndsAGeneratorAtItsYield(): void
    {
        $ended = [];
        $chunks = static function () use (&$ended): \Generator {
            try {
                yield 'a';
                yield 'b';
            } finally {
                $ended[] = 'finally';
            }
        };
        $aggregate = new class ($chunks) implements \IteratorAggregate {
            /** @param \Closure(): \Generator<int, string> $chunks */
            public function __construct(private readonly \Closure $chunks) {}

            public function getIterator(): \Traversable
            {
                return ($this->chunks)();
            }
        };
        foreach ([new IterableStream($chunks()), new IterableStream($aggregate)] as $number => $stream) {
            $stream->read(100);
            self::assertCount($number, $ended);
            $stream->close();
            self::assertCount($number + 1, $ended);

            self::assertSame([true, '', 1], [$stream->eof(), $stream->read(100), $stream->tell()]);
        }
    }

    public function testAGeneratorMayCloseItsStream(): void
    {
        $stream = null;
        $ended = false;
        $stream = new IterableStream((static function () use (&$stream, &$ended): \Generator {
            try {
                yield 'a';
                $stream?->close();
                yield 'b';
            } finally {
                $ended = true;
            }
        })());

        self::assertSame(['a', '', true, true], [$stream->read(100), $stream->read(100), $stream->eof(), $ended]);
    }

    public function testAnExceptionOfAGeneratorReachesTheReader(): void
    {
        $stream = new IterableStream((static function (): \Generator {
            yield 'a';
            throw new \RuntimeException('No more rows');
        })());
        $stream->read(100);

        $this->expectExceptionObject(new \RuntimeException('No more rows'));
        $stream->read(100);
    }

    /** @return \IteratorAggregate<int, string> */
    private static function aggregate(): \IteratorAggregate
    {
        return new class implements \IteratorAggregate {
            public function getIterator(): \Traversable
            {
                yield from ['ab', 'c'];
            }
        };
    }
}
