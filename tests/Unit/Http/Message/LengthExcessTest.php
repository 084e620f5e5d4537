<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Message;

use Nyholm\Psr7\Stream;
use PHPUnit\Framework\TestCase;
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
}
