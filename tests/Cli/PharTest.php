<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\ConsoleApplication;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;
use Symfony\Component\Process\ExecutableFinder;
use Symfony\Component\Process\Process;

/**
 * Builds spindle.phar, and runs each kind of command with it.
 *
 * `SPINDLE_BIN=build/spindle.phar ./test tests/Cli` runs the other tests of this folder with it, too.
 */
final class PharTest extends TestCase
{
    use RunsWork;

    private const MAX_BYTES = 6_000_000;

    private static string $built = '';

    /** @var array<string, string|false> variables before this class */
    private static array $variables = [];

    public static function setUpBeforeClass(): void
    {
        if ((new ExecutableFinder())->find('composer') === null) {
            self::markTestSkipped('Composer is not installed');
        }
        self::$built = sys_get_temp_dir() . '/spindle-phar-' . bin2hex(random_bytes(6));
        mkdir(self::$built, 0o700);
        $build = \dirname(__DIR__, 2) . '/tools/build-phar';
        (new Process([\PHP_BINARY, '-d', 'phar.readonly=0', $build, self::built()], timeout: 240))->mustRun();
        foreach (['SPINDLE_BIN' => self::built(), 'XDG_CACHE_HOME' => self::$built] as $name => $value) {
            self::$variables[$name] = getenv($name);
            putenv("{$name}={$value}");
        }
        $_SERVER['XDG_CACHE_HOME'] = self::$built; // otherwise symfony/process does not pass on the variable
    }

    public static function tearDownAfterClass(): void
    {
        foreach (self::$variables as $name => $value) {
            putenv($value === false ? $name : "{$name}={$value}");
        }
        unset($_SERVER['XDG_CACHE_HOME']);
        if (self::$built !== '') {
            (new Process(['rm', '-rf', self::$built]))->mustRun();
        }
    }

    public function testItIsSmallAndHasOnlyTheProgramAndItsPackages(): void
    {
        self::assertLessThan(self::MAX_BYTES, filesize(self::built()));
        self::assertSame(['LICENSE', 'bin', 'src', 'vendor'], Text::names('phar://' . self::built() . '/'));
        $packages = Text::names('phar://' . self::built() . '/vendor');
        self::assertContains('predis', $packages);
        self::assertSame([], array_intersect(['bin', 'phpstan', 'phpunit', 'guzzlehttp', 'react'], $packages));
    }

    public function testTheOrderOfItsFilesIsThatOfTheirPaths(): void
    {
        self::assertSame(0, $this->ran(['--version'])->getExitCode());
        $bytes = (string) file_get_contents(self::built());
        $positions = [];
        foreach (explode("\n", trim((string) file_get_contents(self::unpacked(self::$built) . '/.files'))) as $line) {
            $path = explode(' ', $line, 2)[1];
            $positions[$path] = strpos($bytes, pack('V', \strlen($path)) . $path); // an entry of the list in the phar
        }
        ksort($positions, \SORT_STRING);
        $sorted = $positions;
        sort($sorted);

        self::assertNotContains(false, $positions);
        self::assertSame($sorted, array_values($positions));
    }

    public function testItRunsUnderAnyName(): void
    {
        $program = $this->path('spindle');
        copy(self::built(), $program);
        chmod($program, 0o755);

        $version = $this->execute([$program, '--version']);
        $run = $this->execute([$program, 'run', '-k', ':::', 'echo 0', 'echo 1']);

        self::assertOutcome(0, 'Spindle ' . ConsoleApplication::VERSION . "\n", $version);
        self::assertOutcome(0, "0\n1\n", $run);
    }

    #[TestWith(['tool.phar'])]
    #[TestWith(['tool'])]
    public function testPoolsRunFromWithinAPharThatDoesNotUnpackItself(string $name): void
    {
        $tool = $this->file('tool.php', <<<'PHP'
            <?php
            use Spindle\Command\Command;
            use Spindle\Command\CommandPool;
            use Spindle\Worker\WorkerContext;
            use Spindle\Worker\WorkerPool;
            use Spindle\Worker\WorkerPoolOptions;

            require __DIR__ . '/vendor/autoload.php';
            echo (new CommandPool(1))->execute(Command::of('echo', 'command'))->stdout();
            foreach ([WorkerContext::Process, WorkerContext::Fork] as $context) {
                $pool = new WorkerPool(1, options: new WorkerPoolOptions(context: $context));
                $file = $pool->submit(static fn(): string => (new ReflectionClass(WorkerPool::class))->getFileName());
                echo str_replace(__DIR__, 'PHAR', $file->await()), "\n";
            }
            PHP);
        copy(self::built(), $this->path('new.phar'));
        (new Process([\PHP_BINARY, '-d', 'phar.readonly=0', '-r', <<<'PHP'
            $phar = new Phar($argv[1]);
            $phar->addFile($argv[2], 'tool.php');
            $phar->setStub('<?php Phar::mapPhar(); require "phar://" . __FILE__ . "/tool.php"; __HALT_COMPILER();');
            PHP, '--', $this->path('new.phar'), $tool]))->mustRun();
        rename($this->path('new.phar'), $this->path($name));

        $pools = $this->execute([$this->path($name)]);

        $file = "PHAR/src/Worker/WorkerPool.php\n";
        self::assertOutcome(0, "command\n{$file}{$file}", $pools);
    }

    public function testItServesWithSeveralProcesses(): void
    {
        $this->file('app.php', <<<'PHP'
            <?php
            use Spindle\Command\Command;
            use Spindle\Command\CommandPool;
            use Spindle\Http\Response;

            $pool = new CommandPool(1);

            return static fn(): Response => Response::text($pool->execute(Command::of('echo', 'hi'))->stdout());
            PHP);
        $process = $this->process(['serve', 'app.php', '--listen', '127.0.0.1:0', '--processes', '2']);
        $process->start();
        Eventually::holdsByItself(
            static fn(): bool => str_contains($process->getErrorOutput(), 'Listening on') || !$process->isRunning(),
            'it serves',
            20.0,
        );
        self::assertSame(1, preg_match('~http://[0-9.:]+~', $process->getErrorOutput(), $match));

        self::assertSame("hi\n", file_get_contents("{$match[0]}/"), $process->getErrorOutput());
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testAgentsRunTasksAndTheQueueIsShown(): void
    {
        $queue = self::newQueue();
        $process = $this->work($queue);

        self::assertSame(gethostname(), $this->executor($queue)->submit(gethostname(...))->await());
        $shown = $this->ranRemote(['queue', 'show', $queue]);
        self::assertStringContainsString('1 submitted, 1 done', $shown->getOutput());
        $process->signal(\SIGTERM);
        self::assertSame(0, $process->wait(), $process->getErrorOutput());
    }

    public function testAMissingFileOfTheUnpackedProgramIsRestored(): void
    {
        $this->ran(['--version']);
        $file = self::unpacked(self::$built) . '/src/Cli/ConsoleApplication.php';
        unlink($file);

        self::assertSame(0, $this->ran(['--version'])->getExitCode());
        self::assertFileExists($file);
    }

    public function testAnUnpackedProgramRunsOnAReadOnlyFileSystem(): void
    {
        $unshare = ['unshare', '--mount'];
        if ((new Process([...$unshare, 'true']))->run() !== 0) {
            self::markTestSkipped('This user may not mount file systems of its own');
        }
        $this->ran(['--version']);
        $script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
        $command = [\PHP_BINARY, self::built(), 'run', ':::', 'echo hi'];
        $run = new Process([...$unshare, 'sh', '-c', $script, self::$built, ...$command], env: ['TMPDIR' => '/proc']);
        $run->run();

        self::assertOutcome(0, "hi\n", $run);
    }

    public function testNoEmptyFilesAreUnpackedWithoutTemporaryFiles(): void
    {
        $cache = ['HOME' => '', 'XDG_CACHE_HOME' => $this->path('cache')];

        $refused = $this->execute([self::built(), '--version'], ['TMPDIR' => '/proc', ...$cache]);
        $run = $this->execute([self::built(), '--version'], $cache);

        self::assertSame([255, ''], [$refused->getExitCode(), $refused->getOutput()]);
        self::assertStringContainsString('which needs a temporary file in /proc: ', $refused->getErrorOutput());
        self::assertOutcome(0, 'Spindle ' . ConsoleApplication::VERSION . "\n", $run);
    }

    public function testOtherVersionsAreRemovedUnlessTheyRun(): void
    {
        $own = self::own();
        foreach (['used', 'unused'] as $name) {
            mkdir($this->path("cache/{$own}/{$name}/src"), 0o700, true);
            touch($this->path("cache/{$own}/{$name}/src/file.php"));
            touch($this->path("cache/{$own}/{$name}/.lock"));
        }
        $lock = fopen($this->path("cache/{$own}/used/.lock"), 'c');
        self::assertIsResource($lock);
        flock($lock, \LOCK_SH);

        $process = $this->execute([self::built(), '--version'], ['XDG_CACHE_HOME' => $this->path('cache')]);

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertFileExists($this->path("cache/{$own}/used/src/file.php"));
        self::assertFileDoesNotExist($this->path("cache/{$own}/unused"));
    }

    public function testFoldersThatAreNotPrivateProgramsAreNotRemoved(): void
    {
        $own = self::own();
        mkdir($this->path("cache/{$own}/other"), 0o700, true);
        mkdir($this->path('elsewhere'), 0o700);
        touch($this->path("cache/{$own}/other/file"));
        touch($this->path('elsewhere/.lock'));
        touch($this->path('elsewhere/file'));
        symlink($this->path('elsewhere'), $this->path("cache/{$own}/link"));

        $process = $this->execute([self::built(), '--version'], ['XDG_CACHE_HOME' => $this->path('cache')]);

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertSame(['file'], Text::names($this->path("cache/{$own}/other")));
        self::assertFileExists($this->path('elsewhere/file'));
    }

    public function testACacheThatIsALinkIsUsed(): void
    {
        mkdir($this->path('elsewhere'));
        symlink($this->path('elsewhere'), $this->path('cache'));

        $process = $this->execute([self::built(), '--version'], ['XDG_CACHE_HOME' => $this->path('cache')]);

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertFileExists(self::unpacked($this->path('elsewhere')) . '/.files');
    }

    public function testAFolderThatOtherUsersCanChangeIsNotUsed(): void
    {
        $own = self::own();
        mkdir($this->path('cache'));
        chmod($this->path('cache'), 0o777);
        $places = ['XDG_CACHE_HOME' => $this->path('cache'), 'TMPDIR' => $this->path('cache')];

        $refused = $this->execute([self::built(), '--version'], ['HOME' => '', ...$places]);
        $run = $this->execute([self::built(), '--version'], ['HOME' => $this->path(), ...$places]);

        self::assertSame([255, ''], [$refused->getExitCode(), $refused->getOutput()]);
        self::assertStringContainsString(
            "{$this->path('cache')}/{$own} can be changed by another user; ",
            $refused->getErrorOutput(),
        );
        self::assertSame(0, $run->getExitCode(), $run->getErrorOutput());
        self::assertDirectoryExists($this->path(".cache/{$own}"));
    }

    public function testNothingIsCreatedInTheFolderOfAnotherUser(): void
    {
        if (posix_geteuid() !== 0) {
            self::markTestSkipped('Only root can give a folder to another user');
        }
        mkdir($this->path('home'), 0o755);
        chown($this->path('home'), 65534);

        $places = ['HOME' => $this->path('home'), 'XDG_CACHE_HOME' => '', 'TMPDIR' => $this->path()];
        $run = $this->execute([self::built(), '--version'], $places);

        self::assertSame(0, $run->getExitCode(), $run->getErrorOutput());
        self::assertSame([], Text::names($this->path('home')));
    }

    /**
     * @param non-empty-list<string> $command
     * @param array<string, string>  $environment
     */
    private function execute(array $command, array $environment = []): Process
    {
        $process = new Process([\PHP_BINARY, ...$command], $this->path(), $environment, timeout: 60.0);
        $process->run();

        return $process;
    }

    /** Returns the name of this user's folder in a cache. */
    private static function own(): string
    {
        return 'spindle-' . posix_geteuid();
    }

    /** Returns the folder of the program that was unpacked in a cache. */
    private static function unpacked(string $cache): string
    {
        $own = "{$cache}/" . self::own();

        return "{$own}/" . Text::names($own)[0];
    }

    private static function built(): string
    {
        return self::$built . '/spindle.phar';
    }
}
