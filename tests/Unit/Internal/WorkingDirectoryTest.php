<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\WorkingDirectory;
use Spindle\Postgres\PostgresOptions;
use Spindle\Tests\OwnDirectory;

final class WorkingDirectoryTest extends TestCase
{
    use OwnDirectory;

    private string $previous;
    private string|false $pwd;

    protected function setUp(): void
    {
        $this->previous = (string) getcwd();
        $this->pwd = getenv('PWD');
        mkdir($this->path('release'));
        symlink('release', $this->path('current'));
        chdir($this->path('release'));
    }

    protected function tearDown(): void
    {
        chdir($this->previous);
        putenv($this->pwd === false ? 'PWD' : "PWD={$this->pwd}");
    }

    public function testItIsNamedAsPwdNamesIt(): void
    {
        putenv("PWD={$this->path('current')}");

        self::assertSame($this->path('current'), WorkingDirectory::named());
        self::assertSame($this->path('current/app.php'), WorkingDirectory::absolute('app.php'));
    }

    #[TestWith(['PWD'])]
    #[TestWith(['PWD='])]
    #[TestWith(['PWD=.'])]
    #[TestWith(['PWD=/'])]
    #[TestWith(['PWD=/missing'])]
    public function testAPwdThatDoesNotLeadToItIsIgnored(string $pwd): void
    {
        putenv($pwd);
        $real = (string) realpath($this->path('release'));

        self::assertSame($real, WorkingDirectory::named());
        self::assertSame("{$real}/app.php", WorkingDirectory::absolute('app.php'));
    }

    #[TestWith(['/app.php'])]
    #[TestWith(['phar:///app.phar/app.php'])]
    #[TestWith(['data:,<?php'])]
    #[TestWith([''])]
    public function testAnAbsoluteOrEmptyPathIsKept(string $path): void
    {
        self::assertSame($path, WorkingDirectory::absolute($path));
    }

    public function testAPathInARemovedDirectoryDoesNotBecomeOneInTheRootDirectory(): void
    {
        mkdir($this->path('gone'));
        chdir($this->path('gone'));
        rmdir($this->path('gone'));

        self::assertSame('', WorkingDirectory::named());
        self::assertSame('ca.pem', WorkingDirectory::absolute('ca.pem'));
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("The file 'ca.pem' of the option tlsCaFile does not exist");
        new PostgresOptions(tlsCaFile: 'ca.pem');
    }

    public function testADirectoryIsNamedByAnAbsolutePathOnly(): void
    {
        self::assertTrue(WorkingDirectory::isNamedBy($this->path('current'), $this->path('release')));
        self::assertFalse(WorkingDirectory::isNamedBy('.', $this->path('release')));
        self::assertFalse(WorkingDirectory::isNamedBy($this->path(), $this->path('release')));
        self::assertFalse(WorkingDirectory::isNamedBy($this->path('missing'), $this->path('missing')));
    }
}
