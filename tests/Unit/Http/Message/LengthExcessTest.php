<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use GuzzleHttp\Psr7\FnStream;
use Nyholm\Psr7\Stream;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Message\IterableStream;
use Spindle\Http\Internal\Message\LengthExcess;
use Spindle\Tests\Streams;

final class LengthExcessTest extends TestCase
{
    public function testTheBytesAfterTheLengthCountAlthoughAnotherReaderHasMovedTheStream(): void
    {
        $file = Stream::create(Streams::open('/proc/self/status', 'r')); // a file that reports the size 0
        $size = \strlen($file->getContents());

        self::assertNotNull(LengthExcess::of($file, $size - 100));
        $file->rewind();
        self::assertNull(LengthExcess::of($file, $size + 100));
    }

    public function testAFailureAfterTheAnnouncedBytesIsIgnored(): void
    {
        $body = FnStream::decorate(Stream::create(''), [
            'tell' => static fn(): int => 5,
            'read' => static fn(): never => throw new \RuntimeException('There are no more bytes'),
        ]);

        self::assertNull(LengthExcess::of($body, 5));
    }

    public function testTheRestOfALongPieceIsNotCopied(): void
    {
        $stream = new IterableStream([str_repeat('x', 20_000_000)]);
        $stream->read(10);
        memory_reset_peak_usage();
        $before = memory_get_usage();

        self::assertEquals(new LengthExcess(10, 20_000_000), LengthExcess::of($stream, 10));
        self::assertLessThan(5_000_000, memory_get_peak_usage() - $before);
    }
}
