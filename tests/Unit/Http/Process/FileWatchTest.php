<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Process;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Internal\Process\FileWatch;
use Spindle\Tests\OwnDirectory;

final class FileWatchTest extends TestCase
{
    use OwnDirectory;

    public function testChangesAreReportedOnce(): void
    {
        mkdir($this->path('src'));
        $this->file('app.php', 'old');
        $this->file('src/Removed.php', '');
        $this->file('src/Same.php', '');
        $watch = new FileWatch($this->path());
        self::assertSame([], $watch->changes());

        $this->file('app.php', 'newer');
        $this->file('src/Added.php', '');
        unlink($this->path('src/Removed.php'));

        self::assertEqualsCanonicalizing(['app.php', 'src/Added.php', 'src/Removed.php'], $watch->changes());
        self::assertSame([], $watch->changes());
    }

    public function testAReplacementWithTheSameSizeAndTimeIsNoticed(): void
    {
        touch($this->file('app.php', 'old'), 1_000_000_000);
        $watch = new FileWatch($this->path());
        touch($this->file('app.new', 'new'), 1_000_000_000);
        rename($this->path('app.new'), $this->path('app.php'));

        self::assertSame(['app.php'], $watch->changes());
    }

    public function testTwoVersionsWithTheSameSecondAndSizeAreDistinguished(): void
    {
        $now = 1_000_000_000;
        touch($path = $this->file('app.php', 'one'), $now);
        $watch = new FileWatch($this->path(), static function () use (&$now): int {
            return $now;
        });
        $save = static function (string $text) use ($path): void {
            file_put_contents($path, $text);
            touch($path, 1_000_000_000);
        };
        $save('two');
        self::assertSame(['app.php'], $watch->changes());
        self::assertSame([], $watch->changes());
        $save('six');
        $now += 5; // time without a scan
        self::assertSame(['app.php'], $watch->changes());
        self::assertSame([], $watch->changes());
        ++$now;
        self::assertSame([], $watch->changes(), 'what is no longer recent has not changed by that');
    }

    public function testAnOldFileWithAnUnchangedStatusIsNotRead(): void
    {
        touch($path = $this->file('app.php', 'one'), 1_000_000_000);
        $watch = new FileWatch($this->path());
        file_put_contents($path, 'two');
        touch($path, 1_000_000_000);

        self::assertSame([], $watch->changes());
    }

    public function testAFileThatIsRewrittenWithTheSameContentsHasNotChanged(): void
    {
        $path = $this->file('container.php', 'compiled');
        $watch = new FileWatch($this->path());
        foreach ([1_000_000_000, 1_000_000_010, time()] as $time) {
            touch($this->file('container.new', 'compiled'), $time);
            rename($this->path('container.new'), $path);
            self::assertSame([], $watch->changes());
        }
        file_put_contents($path, 'compiled again');

        self::assertSame(['container.php'], $watch->changes());
    }

    public function testAFileWithoutAHashIsReportedAtMostOnce(): void
    {
        touch($path = $this->file('container.php', 'compiled'), 1_000_000_000);
        $watch = new FileWatch($this->path());
        touch($path, 1_000_000_010);
        self::assertSame(['container.php'], $watch->changes());
        touch($path, 1_000_000_020);

        self::assertSame([], $watch->changes());
    }

    public function testOtherFilesAndFoldersAreIgnored(): void
    {
        $watch = new FileWatch($this->path());
        foreach (['vendor', 'src', 'src/vendor', '.git'] as $folder) {
            mkdir($this->path($folder));
            $this->file("{$folder}/a.txt", '');
        }
        $this->file('vendor/a.php', '');
        $this->file('src/vendor/a.php', '');
        $this->file('.git/a.php', '');
        $this->file('.a.php', '');

        self::assertSame([], $watch->changes());
    }

    public function testOnlySomeOfManyChangesAreNamed(): void
    {
        $watch = new FileWatch($this->path());
        foreach (range(1, 12) as $number) {
            $this->file("{$number}.php", '');
        }
        $changes = $watch->changes();

        self::assertCount(6, $changes);
        self::assertSame('7 more', $changes[5]);
    }

    public function testARemovedFolderHasNoFiles(): void
    {
        mkdir($this->path('src'));
        $this->file('src/a.php', '');
        $watch = new FileWatch($this->path('src'));
        unlink($this->path('src/a.php'));
        rmdir($this->path('src'));

        self::assertSame(['a.php'], $watch->changes());
        self::assertSame([], $watch->changes());
    }
}
