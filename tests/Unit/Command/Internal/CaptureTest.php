<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Command\Internal\Capture;
use Spindle\Command\Internal\CaptureStore;
use Spindle\Command\StreamException;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;

final class CaptureTest extends TestCase
{
    use OwnDirectory;

    private const MEGABYTE = 1 << 20;

    public function testSmallOutputStaysInMemory(): void
    {
        $capture = new Capture(new CaptureStore('/no/such/directory'));
        $capture->append('some ');
        $capture->append('bytes');

        self::assertSame('some bytes', $capture->toString());
        self::assertSame(10, $capture->length);
    }

    public function testAMegabyteStaysInMemoryAndAByteMoreDoesNot(): void
    {
        $capture = new Capture(new CaptureStore('/no/such/directory'));
        $capture->append(str_repeat('x', self::MEGABYTE));
        self::assertSame(self::MEGABYTE, $capture->length);

        $this->expectException(StreamException::class);
        $capture->append('y');
    }

    public function testATinyOutputNeedsNoFileEvenIfOtherOutputsUseAllMemory(): void
    {
        $store = new CaptureStore('/no/such/directory');
        $large = [];
        do {
            $large[] = $last = new Capture($store);
            try {
                $last->append(str_repeat('x', self::MEGABYTE));
                $isFull = false;
            } catch (StreamException) {
                $isFull = true;
            }
        } while (!$isFull);
        $tiny = new Capture($store);
        $tiny->append(str_repeat('x', 256));
        self::assertSame(256, $tiny->length);

        $this->expectException(StreamException::class);
        $tiny->append('y');
    }

    public function testOutputInAFileIsReadTogetherWithOutputFromMemory(): void
    {
        $capture = new Capture(new CaptureStore($this->path()));
        $expected = '';
        for ($i = 0; $i < 30; ++$i) {
            $capture->append($bytes = str_repeat(\chr($i), 100_000));
            $expected .= $bytes;
        }

        self::assertTrue($capture->toString() === $expected);
        self::assertSame(3_000_000, $capture->length);
        self::assertSame([], Text::names($this->path()), 'the file has no name');
    }

    public function testOutputThatIsLargerThanTheMemoryIsRefused(): void
    {
        [$message, $bytes] = (array) Host::call(
            self::class . '::readMoreThanTheMemory',
            [$this->path()],
            options: ['-d', 'memory_limit=64M'],
        );

        self::assertIsString($message);
        self::assertStringStartsWith('The output of 100000000 bytes does not fit into memory: ', $message);
        self::assertStringContainsString(' of 67108864 bytes (memory_limit) are in use. Read it with ', $message);
        self::assertSame(100_000_000, $bytes, 'the stream still has all of it');
    }

    /** @return array{string, int} message of the exception, and number of bytes of the stream */
    public static function readMoreThanTheMemory(string $directory): array
    {
        $capture = new Capture(new CaptureStore($directory));
        for ($i = 0; $i < 100; ++$i) {
            $capture->append(str_repeat('x', 1_000_000));
        }
        $message = '';
        try {
            $capture->toString();
        } catch (StreamException $refused) {
            $message = $refused->getMessage();
        }

        return [$message, fstat($capture->toStream())['size'] ?? 0];
    }

    public function testARelativeDirectoryIsNotInTheRootDirectoryWhenTheWorkingDirectoryWasRemoved(): void
    {
        $before = (string) getcwd();
        mkdir($this->path('gone'));
        chdir($this->path('gone'));
        rmdir($this->path('gone'));
        try {
            $store = new CaptureStore('tmp');

            $this->expectException(StreamException::class);
            $this->expectExceptionMessage('Could not write a temporary file in tmp: No such file or directory');
            $store->open();
        } finally {
            chdir($before);
        }
    }

    public function testAFileIsForItsOwnerAlone(): void
    {
        $store = new CaptureStore($this->path());
        $umask = umask(0);
        try {
            $stat = fstat($store->open());
        } finally {
            self::assertSame(0, umask($umask), 'the mask is what it was');
        }

        self::assertSame(0o100600, $stat['mode'] ?? 0);
    }

    public function testStreamsOverAFileHavePositionsOfTheirOwn(): void
    {
        $capture = new Capture(new CaptureStore($this->path()));
        for ($i = 0; $i < 200_000; ++$i) {
            $capture->append("{$i}\n" . ($i === 0 ? str_repeat('x', self::MEGABYTE) . "\n" : ''));
        }
        [$one, $other] = [$capture->toStream(), $capture->toStream()];

        self::assertSame(["0\n", "0\n"], [fgets($one), fgets($other)]);
        fgets($one);
        self::assertSame("1\n", fgets($one));
        self::assertSame(0, fseek($other, -7, \SEEK_END));
        self::assertSame("199999\n", fread($other, 100));
        self::assertTrue(feof($other) || fread($other, 1) === '');
        self::assertSame(0, fseek($other, 2));
        self::assertSame(2, ftell($other));
        self::assertSame('xxx', fread($other, 3));
        self::assertSame(-1, fseek($other, -5));
        self::assertSame($capture->length, fstat($one)['size'] ?? 0);
        rewind($one);
        self::assertTrue(stream_get_contents($one) === $capture->toString());
    }

    public function testAStreamOutlivesItsCapture(): void
    {
        $capture = new Capture(new CaptureStore($this->path()));
        $capture->append(str_repeat('x', 2 * self::MEGABYTE));
        $stream = $capture->toStream();
        unset($capture);

        self::assertSame(2 * self::MEGABYTE, \strlen((string) stream_get_contents($stream)));
    }

    public function testAStreamOverMemoryCannotChangeIt(): void
    {
        $capture = new Capture(new CaptureStore(null));
        $capture->append('kept');
        fwrite($capture->toStream(), 'lost');

        self::assertSame('kept', $capture->toString());
    }

    public function testAnUnserializedOutputIsKeptWhateverItsSize(): void
    {
        $capture = new Capture(new CaptureStore('/no/such/directory'));
        $capture->append(str_repeat('x', self::MEGABYTE));
        $copy = unserialize(serialize($capture));
        self::assertInstanceOf(Capture::class, $copy);

        self::assertSame($capture->toString(), $copy->toString());
        self::assertSame(self::MEGABYTE, $copy->length);
    }

    public function testAStoreIsFullWhenItHoldsTooMuchUntilSomeIsReleased(): void
    {
        $store = new CaptureStore($this->path());
        $captures = [];
        for ($i = 0; $i < 80; ++$i) {
            $captures[$i] = new Capture($store);
            $captures[$i]->append(str_repeat('x', self::MEGABYTE));
        }
        self::assertLessThanOrEqual(
            64 * self::MEGABYTE,
            array_sum(array_map(
                static fn(Capture $capture): int => $capture->length,
                $captures,
            )) - 16 * self::MEGABYTE,
        );
        for ($i = 0; $i < 80; ++$i) {
            $captures[$i]->append('x'); // puts each into a file
        }
        self::assertTrue($store->isFull());
        array_splice($captures, 0, 40);

        self::assertFalse($store->isFull());
    }

    public function testAFileThatCannotBeWrittenIsNotCounted(): void
    {
        $store = new CaptureStore('/no/such/directory');
        for ($i = 0; $i < 100; ++$i) {
            $capture = new Capture($store);
            try {
                $capture->append(str_repeat('x', 2 * self::MEGABYTE));
                self::fail('It was kept');
            } catch (StreamException $exception) {
                self::assertStringContainsString(
                    'temporary file in /no/such/directory: No such file or directory',
                    $exception->getMessage(),
                );
            }
        }

        self::assertFalse($store->isFull());
    }
}
