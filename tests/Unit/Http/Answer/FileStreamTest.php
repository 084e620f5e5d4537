<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Answer\FileStream;
use Spindle\Tests\LeavesNothing;
use Spindle\Tests\OwnDirectory;

final class FileStreamTest extends TestCase
{
    use LeavesNothing;
    use OwnDirectory;

    public function testTheStreamHasOnlyItsPartOfTheFile(): void
    {
        $part = $this->part('0123456789', 2, 5);

        self::assertSame(5, $part->getSize());
        self::assertFalse($part->eof());
        self::assertSame('234', $part->read(3));
        self::assertSame(3, $part->tell());
        self::assertSame('56', $part->read(100));
        self::assertTrue($part->eof());
        self::assertSame('', $part->read(100));
    }

    public function testTheStreamCanBeReadAgainFromAnyPosition(): void
    {
        $part = $this->part('0123456789', 2, 5);

        self::assertTrue($part->isSeekable());
        self::assertSame(['23456', '23456'], [(string) $part, (string) $part]);
        $part->seek(1);
        self::assertSame('3456', $part->getContents());
        $part->seek(-1, \SEEK_END);
        self::assertSame('6', $part->getContents());
        $part->seek(-2, \SEEK_CUR);
        self::assertSame(['5', 4], [$part->read(1), $part->tell()]);
        $part->rewind();
        self::assertSame('2', $part->read(1));
        $part->seek(50);
        self::assertSame(['', true], [$part->read(1), $part->eof()]);
    }

    public function testASeekBeforeTheBeginningFails(): void
    {
        $part = $this->part('0123456789', 2, 5);

        $this->expectException(\RuntimeException::class);
        $part->seek(-1);
    }

    public function testAppendedBytesAreNotRead(): void
    {
        $part = $this->part('01234', 0, 5);
        self::assertSame('01', $part->read(2));
        file_put_contents($this->path('file'), '56789', \FILE_APPEND);

        self::assertSame(['234', 5, true], [$part->read(100), $part->getSize(), $part->eof()]);
    }

    public function testTheStreamEndsWhereTheFileIsTruncated(): void
    {
        $part = $this->part('0123456789', 0, 10);
        self::assertSame('01', $part->read(2));
        $file = fopen($this->path('file'), 'r+');
        self::assertNotFalse($file);
        ftruncate($file, 4);

        self::assertSame(['23', false, '', true], [$part->read(100), $part->eof(), $part->read(100), $part->eof()]);
        self::assertSame('0123', (string) $part);
    }

    public function testALargeReadReturnsAllBytes(): void
    {
        $part = $this->part(str_repeat('0123456789', 100_000), 5, 900_000);

        self::assertSame(262_144, \strlen($part->read(262_144)));
        self::assertSame(900_000 - 262_144, \strlen($part->getContents()));
    }

    public function testTheStreamIsReadOnly(): void
    {
        $part = $this->part('0123456789', 2, 5);

        self::assertTrue($part->isReadable());
        self::assertFalse($part->isWritable());
        $this->expectException(\RuntimeException::class);
        $part->write('x');
    }

    public function testAClosedStreamIsAtItsEndAndItsFileIsClosed(): void
    {
        $file = fopen($this->file('file', '0123456789'), 'r');
        self::assertNotFalse($file);
        $part = new FileStream($file, 0, 10);
        $part->close();
        $part->close();

        self::assertSame(['', true], [$part->read(1), $part->eof()]);
        self::assertFalse(\is_resource($file));
        $this->expectException(\RuntimeException::class);
        $part->rewind();
    }

    private function part(string $content, int $start, int $length): FileStream
    {
        $file = fopen($this->file('file', $content), 'r');
        self::assertNotFalse($file);

        return new FileStream($file, $start, $length);
    }
}
