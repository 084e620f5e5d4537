<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Form;

use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Revolt\EventLoop\UncaughtThrowable;
use Spindle\Http\Internal\Form\UploadedFile;
use Spindle\Http\Internal\Form\UploadException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Streams;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

final class UploadedFileTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;

    public function testAFileReturnsTheMetadataThatTheClientSent(): void
    {
        $file = new UploadedFile(self::content('12345'), 5, \UPLOAD_ERR_OK, 'x.png', 'image/png');

        self::assertSame(
            [5, \UPLOAD_ERR_OK, 'x.png', 'image/png'],
            [$file->getSize(), $file->getError(), $file->getClientFilename(), $file->getClientMediaType()],
        );
    }

    #[TestWith(['../../etc/passwd', 'passwd'])]
    #[TestWith(['/etc/passwd', 'passwd'])]
    #[TestWith(['C:\\dir\\x.png', 'x.png'])]
    #[TestWith(['..\\x/y\\z.png', 'z.png'])]
    #[TestWith(['a\\b/c', 'c'])]
    #[TestWith(['../..', '..'])]
    #[TestWith(['dir/', null])]
    #[TestWith(['0', '0'])]
    #[TestWith(['', null])]
    #[TestWith([null, null])]
    public function testTheNameOfAFileIsThePartAfterTheLastSeparator(?string $sent, ?string $name): void
    {
        self::assertSame($name, (new UploadedFile(self::content(''), 0, \UPLOAD_ERR_OK, $sent))->getClientFilename());
    }

    public function testTheStreamIsTheSameEachTimeAndAtItsBeginning(): void
    {
        $file = new UploadedFile(self::content('12345'), 5);
        $stream = $file->getStream();

        self::assertSame('123', $stream->read(3));
        self::assertSame($stream, $file->getStream());
        self::assertSame('12345', $stream->getContents());
    }

    public function testTheStreamCanBeReadFromAnyPosition(): void
    {
        $stream = (new UploadedFile(self::content('12345'), 5))->getStream();

        $stream->seek(-2, \SEEK_END);
        $read = [$stream->tell(), $stream->read(0), $stream->read(9), (string) $stream];
        self::assertSame([3, '', '45', '12345'], $read);
        self::assertTrue($stream->eof());
        self::assertSame([true, true, false], [$stream->isReadable(), $stream->isSeekable(), $stream->isWritable()]);
        $this->expectExceptionMessage('Offset -1 is outside of the uploaded file');
        $stream->seek(-1);
    }

    public function testTheStreamStaysOpenWithoutTheFileObject(): void
    {
        $stream = (new UploadedFile(self::content('12345'), 5))->getStream();

        self::assertSame('12345', (string) $stream);
    }

    #[TestWith([0])]
    #[TestWith([1])]
    #[TestWith([1 << 20])]
    #[TestWith([(3 << 20) + 1])]
    public function testAFileIsMovedWithAllBytes(int $size): void
    {
        $bytes = substr(str_repeat(random_bytes(997), intdiv($size, 997) + 1), 0, $size);
        $file = new UploadedFile(self::content($bytes), $size);
        $file->moveTo($this->path('target'));

        self::assertSame(md5($bytes), md5_file($this->path('target')));
        self::assertSame(['target'], Text::names($this->path()));
        self::assertSame(0o666 & ~umask(), fileperms($this->path('target')) & 0o777);
    }

    public function testAMovedFileReplacesAnExistingTarget(): void
    {
        (new UploadedFile(self::content('new'), 3))->moveTo($this->file('target', 'which was longer'));

        self::assertStringEqualsFile($this->path('target'), 'new');
    }

    public function testAFileIsMovedCompletelyAfterItsStreamWasRead(): void
    {
        $file = new UploadedFile(self::content('12345'), 5);
        $file->getStream()->read(3);
        $file->moveTo($this->path('target'));

        self::assertStringEqualsFile($this->path('target'), '12345');
    }

    public function testAFileCanBeMovedOnlyOnce(): void
    {
        $descriptors = \count(Text::names('/proc/self/fd'));
        $file = new UploadedFile(Streams::open($this->file('source', '12345'), 'r'), 5);
        $file->getStream();
        $file->moveTo($this->path('target'));

        self::assertSame('The uploaded file was already moved', self::refusal(static fn() => $file->getStream()));
        self::assertSame(
            'The uploaded file was already moved',
            self::refusal(fn() => $file->moveTo($this->path('again'))),
        );
        self::assertSame(['source', 'target'], Text::names($this->path()));
        self::assertCount($descriptors, Text::names('/proc/self/fd'));
    }

    public function testOthersGoOnWhileALargeFileIsMovedAndSeeNoneOfIt(): void
    {
        $size = 5 << 20;
        $file = new UploadedFile(self::content(str_repeat('x', $size)), $size);
        $seen = [];
        $look = EventLoop::repeat(0, function () use (&$seen, $file): void {
            $seen[] = file_exists($this->path('target'));
            self::assertSame(
                'The uploaded file was already moved',
                self::refusal(fn() => $file->moveTo($this->path('again'))),
            );
        });
        $file->moveTo($this->path('target'));
        EventLoop::cancel($look);

        self::assertGreaterThanOrEqual(2, \count($seen));
        self::assertNotContains(true, $seen);
        self::assertSame($size, filesize($this->path('target')));
    }

    public function testAConcurrentReadOfTheStreamDoesNotCorruptTheCopy(): void
    {
        $bytes = random_bytes(4 << 20);
        $file = new UploadedFile(self::content($bytes), 4 << 20);
        $stream = $file->getStream();
        $look = EventLoop::repeat(0, static function () use ($stream): void {
            $stream->rewind();
            $stream->read(100);
        });
        $file->moveTo($this->path('target'));
        EventLoop::cancel($look);

        self::assertSame(md5($bytes), md5_file($this->path('target')));
    }

    public function testAStreamThatIsClosedDuringTheMoveIsReported(): void
    {
        $file = new UploadedFile(self::content(str_repeat('x', 4 << 20)), 4 << 20);
        EventLoop::queue($file->getStream()->close(...));

        self::assertSame(
            'The stream of the uploaded file was closed',
            self::refusal(fn() => $file->moveTo($this->path('target'))),
        );
        self::assertSame([], Text::names($this->path()));
    }

    public function testAReleasedFileIsClosedAndRefused(): void
    {
        foreach ([false, true] as $withStream) {
            $content = self::content('12345');
            $file = new UploadedFile($content, 5);
            $withStream ? $file->getStream() : null;
            $file->release();
            $file->release();

            self::assertFalse(\is_resource($content));
            foreach ([$file->getStream(...), fn() => $file->moveTo($this->path('target'))] as $use) {
                self::assertSame(
                    'The uploaded file is not available any more, because the request has ended',
                    self::refusal($use),
                );
            }
        }
        self::assertSame([], Text::names($this->path()));
    }

    public function testADetachedStreamStaysOpenAfterTheRelease(): void
    {
        $file = new UploadedFile(self::content('12345'), 5);
        $detached = $file->getStream()->detach();
        $file->release();

        self::assertIsResource($detached);
        self::assertSame('12345', stream_get_contents($detached, null, 0));
    }

    public function testAFileThatIsReleasedDuringItsMoveIsMovedOrClosed(): void
    {
        $size = 3 << 20;
        foreach ([[$size, 'target'], [$size + 1, 'missing']] as [$announced, $name]) {
            $content = self::content(str_repeat('x', $size));
            $file = new UploadedFile($content, $announced);
            EventLoop::queue($file->release(...));
            $move = fn() => $file->moveTo($this->path($name));
            if ($name === 'target') {
                $move();
                self::assertSame($size, filesize($this->path('target')));
            } else {
                self::assertStringStartsWith('Could not move the uploaded file to', self::refusal($move));
                self::assertFalse(\is_resource($content));
            }
        }
        self::assertSame(['target'], Text::names($this->path()));
    }

    public function testAFailedMoveLeavesNoCopyAndCanBeRepeated(): void
    {
        $file = new UploadedFile(self::content('12345'), 5);
        mkdir($this->path('folder'));
        $missing = $this->path('missing/target');

        self::assertSame(
            "Could not move the uploaded file to {$missing}: No such file or directory",
            self::refusal(static fn() => $file->moveTo($missing)),
        );
        self::assertStringContainsString(
            $this->path('folder'),
            self::refusal(fn() => $file->moveTo($this->path('folder'))),
        );
        self::assertSame(['folder'], Text::names($this->path()));
        $file->moveTo($this->path('folder/target'));
        self::assertStringEqualsFile($this->path('folder/target'), '12345');
    }

    public function testAMoveWhoseWaitFailsCanBeRepeated(): void
    {
        $size = 4 << 20;
        $file = new UploadedFile(self::content(str_repeat('x', $size)), $size);
        EventLoop::queue(static fn(): never => throw new \RuntimeException('from another fiber'));
        self::thrown(UncaughtThrowable::class, fn() => $file->moveTo($this->path('target')));
        self::assertSame([], Text::names($this->path()));
        $file->moveTo($this->path('target'));

        self::assertSame($size, filesize($this->path('target')));
    }

    public function testAFullDiskLeavesNothingThere(): void
    {
        FullDisk::mount();
        try {
            $file = new UploadedFile(self::content(str_repeat('x', 200_000)), 200_000);

            self::assertStringStartsWith(
                'Could not move the uploaded file to ' . FullDisk::DIRECTORY . '/target',
                self::refusal(static fn() => $file->moveTo(FullDisk::DIRECTORY . '/target')),
            );
            self::assertSame([[], 0], [FullDisk::$names, FullDisk::$open]);
            self::assertSame(200_000, \strlen((string) $file->getStream()));
        } finally {
            FullDisk::unmount();
        }
    }

    public function testAFileThatLostBytesIsNotMoved(): void
    {
        $file = new UploadedFile(self::content('12'), 5);

        self::assertStringStartsWith(
            'Could not move the uploaded file to',
            self::refusal(fn() => $file->moveTo($this->path('target'))),
        );
        self::assertSame([], Text::names($this->path()));
    }

    public function testAClosedStreamIsReported(): void
    {
        $file = new UploadedFile(self::content('12345'), 5);
        $file->getStream()->close();

        self::assertSame(
            'The stream of the uploaded file was closed',
            self::refusal(static fn() => $file->getStream()),
        );
        self::assertSame(
            'The stream of the uploaded file was closed',
            self::refusal(fn() => $file->moveTo($this->path('target'))),
        );
    }

    #[TestWith([\UPLOAD_ERR_NO_FILE, 'No file was chosen'])]
    #[TestWith([\UPLOAD_ERR_PARTIAL, 'The upload failed with error 3'])]
    public function testAFileThatWasNotUploadedHasNoStreamAndCanNotBeMoved(int $error, string $why): void
    {
        $file = new UploadedFile(null, 0, $error);

        self::assertSame($why, self::refusal(static fn() => $file->getStream()));
        self::assertSame($why, self::refusal(fn() => $file->moveTo($this->path('target'))));
    }

    #[TestWith([''])]
    #[TestWith(["a\0b"])]
    public function testAnInvalidPathIsRefused(string $path): void
    {
        $this->expectException(\InvalidArgumentException::class);

        (new UploadedFile(self::content(''), 0))->moveTo($path);
    }

    /** @return resource */
    private static function content(string $bytes): mixed
    {
        $file = Streams::open('php://memory', 'w+');
        fwrite($file, $bytes);

        return $file;
    }

    /** @param \Closure(): mixed $action */
    private static function refusal(\Closure $action): string
    {
        try {
            $action();
        } catch (UploadException $exception) {
            return $exception->getMessage();
        }
        self::fail('It was done');
    }
}
