<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Answer;

use Spindle\Http\HttpException;
use Spindle\Http\Internal\Answer\OpenFile;
use Spindle\Internal\NullDevice;
use Spindle\Internal\Warnings;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\TidyTestCase;

final class OpenFileTest extends TidyTestCase
{
    use OwnDirectory;

    public function testMetadataDescribesTheOpenFile(): void
    {
        $path = $this->file('a', 'first');
        $file = OpenFile::at($path);
        rename($this->file('b', 'the second'), $path);

        self::assertSame(5, $file->size);
        self::assertSame('first', (string) $file->whole());
    }

    public function testTheValidatorsOfARecentFileDoNotMatchItLater(): void
    {
        $path = $this->file('app.css', 'color:red ;');
        touch($path, 1_000_000_000);
        $file = OpenFile::at($path);
        foreach ([1_000_000_000, 1_000_000_001] as $recent) {
            self::assertStringStartsWith('W/"', $file->etag($recent));
            self::assertNotSame($file->etag(1_000_000_002), substr($file->etag($recent), 2));
            self::assertSame(999_999_999, $file->lastModified($recent));
        }
        self::assertStringStartsWith('"', $file->etag(1_000_000_002));
        self::assertSame(1_000_000_000, $file->lastModified(1_000_000_002));
    }

    public function testWhatIsNotARegularFileIsNotFound(): void
    {
        posix_mkfifo($this->path('pipe'), 0o600);
        mkdir($this->path('directory'));
        symlink('nowhere', $this->path('dangling'));
        symlink('circle', $this->path('circle'));
        $this->file('file', 'content');
        $paths = [
            '',
            '.',
            "file\0",
            'file/',
            'file/below',
            'absent',
            'absent/file',
            'pipe',
            'directory',
            'dangling',
            'circle',
            str_repeat('a', 300),
            str_repeat('a/', 5000),
        ];

        foreach ($paths as $path) {
            self::assertSame(404, self::statusOf($this->path() . "/{$path}"), $path);
        }
        self::assertSame(404, self::statusOf('/dev/null'));
        self::assertSame(404, self::statusOf(''));
        self::assertSame(404, self::statusOf("\0"));
    }

    public function testStreamWrappersAreNotUsed(): void
    {
        foreach ([
            'php://stdin',
            'data:text/plain,content',
            'data://text/plain,content',
            'http://127.0.0.1:1/',
            'file://' . __FILE__,
            'glob:///*',
            'compress.zlib://' . __FILE__,
        ] as $path) {
            self::assertSame(404, self::statusOf($path), $path);
        }
    }

    public function testARelativePathIsInTheWorkingDirectory(): void
    {
        $this->file('file', 'content');
        $before = (string) getcwd();
        chdir($this->path());
        try {
            $file = OpenFile::at('file');
            self::assertNotNull($file->nameBelow((string) realpath($this->path())));
        } finally {
            chdir($before);
        }
        self::assertSame('content', (string) $file->whole());
    }

    public function testAFileThatCanNotBeReadIsForbidden(): void
    {
        $path = $this->file('file', 'content', 0o000);
        $isRoot = posix_geteuid() === 0;
        $isRoot ? posix_seteuid(65_534) : null;
        try {
            self::assertSame(403, self::statusOf($path));
        } finally {
            $isRoot ? posix_seteuid(0) : null;
        }
    }

    public function testAnUnreadableFileIsForbiddenWithoutAccessToDevices(): void
    {
        $this->file('file', 'content', 0o000);
        $directories = \dirname(__DIR__, 4) . ":{$this->path()}";

        self::assertSame(403, Host::call(
            self::class . '::statusForAnotherUser',
            [$this->path('file')],
            options: ['-d', "open_basedir={$directories}"],
        ));
    }

    public static function statusForAnotherUser(string $path): ?int
    {
        if (posix_geteuid() === 0) {
            posix_seteuid(65_534);
        }

        return self::statusOf($path);
    }

    public function testWithoutAFreeDescriptorTheFileIsNotReportedAsUnreadable(): void
    {
        $path = $this->file('file', 'content');
        $limit = posix_getrlimit();
        self::assertIsArray($limit);
        [$soft, $hard] = [$limit['soft openfiles'], $limit['hard openfiles']];
        self::assertIsInt($soft);
        self::assertIsInt($hard);
        // loads the classes before no file can be opened
        array_map(class_exists(...), [HttpException::class, NullDevice::class, OpenFile::class, Warnings::class]);
        posix_setrlimit(\POSIX_RLIMIT_NOFILE, 3, $hard);
        try {
            OpenFile::at($path);
            $failure = null;
        } catch (\RuntimeException $failure) {
        } finally {
            posix_setrlimit(\POSIX_RLIMIT_NOFILE, $soft, $hard);
        }

        self::assertNotNull($failure);
        self::assertNotInstanceOf(HttpException::class, $failure);
        self::assertStringContainsString('too many open files', $failure->getMessage());
    }

    public function testALinkIsBelowTheFolderOfItsTarget(): void
    {
        $root = $this->root();
        $this->file('outside', 'outside');
        mkdir("{$root}/directory");
        $this->file('root/directory/file', 'inside');
        symlink('directory/file', "{$root}/within");
        symlink("{$root}/directory", "{$root}/directory within");
        symlink('../outside', "{$root}/out");
        symlink('..', "{$root}/up");
        symlink('../root/directory/file', "{$root}/out and in");
        mkdir("{$root}-too");
        $this->file('root-too/file', 'of a name that begins alike');

        foreach ([
            'directory/file',
            'within',
            'directory within/file',
            'out and in',
            'up/root/directory/file',
        ] as $inside) {
            self::assertNotNull(OpenFile::at("{$root}/{$inside}")->nameBelow($root), $inside);
        }
        foreach (['out', 'up/outside', '../root-too/file', '../outside'] as $outside) {
            self::assertNull(OpenFile::at("{$root}/{$outside}")->nameBelow($root), $outside);
        }
        self::assertNotNull(OpenFile::at("{$root}/out")->nameBelow('/'));
    }

    public function testALinkThatLedOutsideWhenItWasOpenedStaysRefused(): void
    {
        $root = $this->root();
        symlink($this->file('outside', 'outside'), "{$root}/link");
        $file = OpenFile::at("{$root}/link");
        unlink("{$root}/link");
        $this->file('root/link', 'inside!');

        self::assertNull($file->nameBelow($root));
    }

    public function testALinkThatLeadsOutsideAfterwardsIsRefused(): void
    {
        $root = $this->root();
        $file = OpenFile::at($this->file('root/link', 'inside!'));
        unlink("{$root}/link");
        symlink($this->file('outside', 'outside'), "{$root}/link");

        self::assertNull($file->nameBelow($root));
    }

    public function testADirectoryThatAnotherProcessReplacedByALinkIsNoticedAtOnce(): void
    {
        $root = $this->root();
        mkdir("{$root}/directory");
        mkdir($this->path('outside'));
        link($this->file('root/directory/file', 'the same file'), $this->path('outside/file'));
        self::assertNotNull(OpenFile::at("{$root}/directory/file")->nameBelow($root));
        $opened = OpenFile::at("{$root}/directory/file");
        exec('cd ' . escapeshellarg($root) . ' && mv directory was && ln -s ../outside directory');

        self::assertNull($opened->nameBelow($root));
        self::assertNull(OpenFile::at("{$root}/directory/file")->nameBelow($root));
    }

    public function testAReplacedLinkIsFollowedAgain(): void
    {
        $this->file('new', 'new');
        symlink($this->file('old', 'old'), $this->path('link'));
        self::assertSame('old', (string) OpenFile::at($this->path('link'))->whole());
        exec('cd ' . escapeshellarg($this->path()) . ' && ln -s new other && mv -T other link');

        self::assertSame('new', (string) OpenFile::at($this->path('link'))->whole());
    }

    public function testARemovedFileIsBelowNoFolder(): void
    {
        $file = OpenFile::at($this->file('file', 'content'));
        unlink($this->path('file'));

        self::assertNull($file->nameBelow('/'));
    }

    private function root(): string
    {
        mkdir($this->path('root'));

        return (string) realpath($this->path('root'));
    }

    private static function statusOf(string $path): ?int
    {
        try {
            OpenFile::at($path);

            return null;
        } catch (HttpException $failure) {
            return $failure->status;
        }
    }
}
