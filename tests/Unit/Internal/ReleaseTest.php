<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use Composer\Autoload\ClassLoader;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Release;
use Spindle\Internal\ReleaseMismatchException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;

final class ReleaseTest extends TestCase
{
    use CatchesThrown;
    use OwnDirectory;

    private string $root;
    private string $folder;

    protected function setUp(): void
    {
        $this->folder = (string) getcwd();
        $this->root = (string) realpath($this->path());
        foreach (['1', '2'] as $release) {
            mkdir($this->path($release));
            mkdir($this->path("{$release}/public"));
            $this->file("{$release}/public/app.php", '<?php');
        }
        $this->lead('1');
    }

    protected function tearDown(): void
    {
        chdir($this->folder);
    }

    public function testTheWorkingDirectoryFollowsTheApplication(): void
    {
        foreach (['', '/public'] as $folder) {
            $this->lead('1');
            chdir("{$this->root}/1{$folder}");
            $release = new Release("{$this->root}/current/public/app.php");
            $this->lead('2');
            $release->changeToCurrent();

            self::assertSame("{$this->root}/2{$folder}", getcwd());
        }
    }

    public function testTheWorkingDirectoryFollowsALinkThatLeadsBack(): void
    {
        chdir("{$this->root}/1/public");
        $release = new Release("{$this->root}/current/public/app.php");
        foreach (['2', '1', '2'] as $current) {
            $this->lead($current);

            $release->changeToCurrent();
            self::assertSame("{$this->root}/{$current}/public", getcwd());
        }
        unlink("{$this->root}/2/public/app.php");
        rmdir("{$this->root}/2/public");
        $this->lead('1');
        $release->changeToCurrent();

        self::assertSame("{$this->root}/1/public", getcwd());
    }

    public function testTheWorkingDirectoryFollowsItsOwnLink(): void
    {
        chdir("{$this->root}/1");
        $release = new Release($this->file('app.php', '<?php'), "{$this->root}/current");
        $this->lead('2');
        $release->changeToCurrent();

        self::assertSame("{$this->root}/2", getcwd());
    }

    public function testAWorkingDirectoryOutsideOfTheReleaseIsNotChanged(): void
    {
        chdir($this->root);
        $release = new Release("{$this->root}/current/public/app.php");
        $this->lead('2');
        $release->changeToCurrent();

        self::assertSame($this->root, getcwd());
    }

    public function testAWorkingDirectoryThatTheNewReleaseLacksIsAFailure(): void
    {
        mkdir($this->path('1/var'));
        chdir("{$this->root}/1/var");
        $release = new Release("{$this->root}/current/public/app.php");
        $this->lead('2');

        $this->expectException(ReleaseMismatchException::class);
        $this->expectExceptionMessage(
            "The application has moved to {$this->root}/2,"
                . " but its working directory can't be changed to {$this->root}/2/var",
        );
        $release->changeToCurrent();
    }

    #[TestWith([''])]
    #[TestWith(['/public'])]
    public function testALinkThatLeadsNowhereIsAFailureAndTheWorkingDirectoryStays(string $folder): void
    {
        chdir("{$this->root}/1{$folder}");
        $release = new Release("{$this->root}/current{$folder}");
        $this->lead('2');
        $release->changeToCurrent();
        $this->lead('3');
        $missing = self::thrown(ReleaseMismatchException::class, static fn() => $release->changeToCurrent());
        $message = "{$this->root}/current{$folder} does not exist. Create it, or correct the link in its path";
        self::assertSame($message, $missing->getMessage());
        self::assertSame("{$this->root}/2{$folder}", getcwd());
        $this->lead('1');
        $release->changeToCurrent();

        self::assertSame("{$this->root}/1{$folder}", getcwd());
    }

    public function testAnApplicationThatTheNewReleaseLacksIsAFailureAndTheWorkingDirectoryStays(): void
    {
        chdir("{$this->root}/1/public");
        $release = new Release("{$this->root}/current/public", "{$this->root}/current/public/app.php");
        unlink($this->path('2/public/app.php'));
        $this->lead('2');
        $missing = self::thrown(ReleaseMismatchException::class, static fn() => $release->changeToCurrent());
        $path = "{$this->root}/current/public/app.php";
        $message = "{$path} does not exist. Create it, or correct the link in its path";
        self::assertSame($message, $missing->getMessage());

        self::assertSame("{$this->root}/1/public", getcwd());
    }

    public function testAWorkingDirectoryInARemovedReleaseIsNoFailure(): void
    {
        mkdir($this->path('1/var'));
        mkdir($this->path('2/var'));
        chdir("{$this->root}/1/var");
        $release = new Release("{$this->root}/current/public/app.php", "{$this->root}/1/var");
        $this->lead('2');
        rmdir($this->path('1/var'));
        $release->changeToCurrent();

        self::assertSame("{$this->root}/2/var", getcwd());
    }

    public function testLibrariesOfTheOldReleaseAreAFailure(): void
    {
        $loader = new ClassLoader("{$this->root}/1/vendor");
        $loader->register();
        try {
            $release = new Release("{$this->root}/current/public/app.php");
            $release->changeToCurrent();
            $this->lead('2');

            $this->expectException(ReleaseMismatchException::class);
            $this->expectExceptionMessage(
                "The application has moved to {$this->root}/2, but its libraries were loaded from {$this->root}"
                    . '/1/vendor, which a reload does not change',
            );
            $release->changeToCurrent();
        } finally {
            $loader->unregister();
        }
    }

    private function lead(string $release): void
    {
        symlink($release, $this->path('link'));
        rename($this->path('link'), $this->path('current'));
    }
}
