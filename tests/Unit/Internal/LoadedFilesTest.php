<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Internal\LoadedFiles;
use Spindle\Tests\LoadsSource;

final class LoadedFilesTest extends TestCase
{
    use LoadsSource;

    public function testAFileThatIsOlderThanTheProcessHasNotChanged(): void
    {
        self::assertNull(LoadedFiles::changedSinceLoad(self::settled()));
        self::assertLessThanOrEqual($_SERVER['REQUEST_TIME_FLOAT'], LoadedFiles::earliestLoadTime(self::settled()));
    }

    public function testAFileThatWasWrittenByThisProcessMayHaveChanged(): void
    {
        $file = $this->file('source.php', '<?php return 1;');
        $now = time();
        require $file;

        self::assertEqualsWithDelta($now, LoadedFiles::changedSinceLoad($file), 2);
    }

    public function testAFileThatWasLoadedAfterAMarkHasNotChanged(): void
    {
        $this->loaded('source.php', '<?php return 1;');

        self::assertNull(LoadedFiles::changedSinceLoad($this->path('source.php')));
        LoadedFiles::record();
        self::assertNull(LoadedFiles::changedSinceLoad($this->path('source.php')));
    }

    public function testAChangeInTheSameSecondIsNoticedThoughSizeAndTimeAreTheSame(): void
    {
        $this->loaded('source.php', '<?php return 1;');
        $file = $this->path('source.php');
        $modified = (int) filemtime($file);
        $this->change('source.php', '<?php return 2;');
        touch($file, $modified);

        self::assertNotNull(LoadedFiles::changedSinceLoad($file));
    }

    public function testAFileInADirectoryThatReplacedItsOwnIsNoticed(): void
    {
        $this->file('older.php', '<?php return 2;');
        mkdir($this->path('new'));
        rename($this->path('older.php'), $this->path('new/source.php'));
        mkdir($this->path('now'));
        $this->loaded('now/source.php', '<?php return 1;');
        LoadedFiles::record();
        rename($this->path('now'), $this->path('old'));
        rename($this->path('new'), $this->path('now'));

        self::assertNotNull(LoadedFiles::changedSinceLoad($this->path('now/source.php')));
    }

    public function testAnotherFileHasAnotherIdentity(): void
    {
        $file = $this->file('source.php', '<?php return 1;');
        $before = LoadedFiles::identity($file);
        self::assertSame($before, LoadedFiles::identity($file));
        rename($this->file('other.php', '<?php return 2;'), $file);

        self::assertNotSame($before, LoadedFiles::identity($file));
        unlink($file);
        self::assertSame('', LoadedFiles::identity($file));
    }

    /** Returns a file that does not change while tests run. */
    private static function settled(): string
    {
        return (string) (new \ReflectionClass(TestCase::class))->getFileName();
    }
}
