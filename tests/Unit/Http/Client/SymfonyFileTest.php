<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Client;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Client\SymfonyFile;
use Spindle\Tests\Streams;

final class SymfonyFileTest extends TestCase
{
    public function testAPositionFromTheEndNeedsAKnownSize(): void
    {
        $resource = fopen('php://temp', 'w+');
        \assert($resource !== false);
        fwrite($resource, 'abcdef');
        $file = new SymfonyFile($resource);
        $file->seek(-2, \SEEK_END);
        self::assertSame('ef', $file->getContents());

        $filter = stream_filter_append($resource, 'string.rot13', \STREAM_FILTER_READ);
        self::assertIsResource($filter, 'PHP then reports the size before the filter');
        $this->expectExceptionObject(new \RuntimeException('The size of the resource is unknown'));
        $file->seek(-2, \SEEK_END);
    }

    public function testBytesThatFollowTheReportedSizeAreNotRead(): void
    {
        $resource = fopen('php://temp', 'w+');
        \assert($resource !== false);
        fwrite($resource, 'abc');
        rewind($resource);
        $read = 0;
        $file = new SymfonyFile($resource);
        $file->onRead = static function (int $bytes) use (&$read): void {
            $read += $bytes;
        };
        self::assertSame(3, $file->getSize());
        fwrite($resource, 'abcdef');

        self::assertSame(['abc', 3], [$file->getContents(), $read]);
        self::assertSame('abc', $file->secondReader()->getContents(), 'such as for a copy of the body');
        $file->rewind();
        self::assertSame([6, 'abcdef'], [$file->getSize(), $file->getContents()], 'a second request');
    }

    /** PHP reports the size 0 for it. */
    public function testTheSizeOfAFileOfProcIsUnknownAndNotReportedAsRead(): void
    {
        $read = 0;
        $file = new SymfonyFile(Streams::open('/proc/self/cmdline', 'r'));
        $file->onRead = static function (int $bytes) use (&$read): void {
            $read += $bytes;
        };

        self::assertSame([null, 0], [$file->getSize(), $read]);
        self::assertSame(file_get_contents('/proc/self/cmdline'), $file->getContents());
        self::assertSame(\strlen((string) file_get_contents('/proc/self/cmdline')), $read);
        self::assertSame(0, (new SymfonyFile(Streams::open('/dev/null', 'r')))->getSize());
    }
}
