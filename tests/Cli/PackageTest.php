<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\ConsoleApplication;
use Spindle\Tests\Installation;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Package\LocalPackages;
use Spindle\Tests\Text;
use Symfony\Component\Process\Exception\ProcessFailedException;
use Symfony\Component\Process\ExecutableFinder;
use Symfony\Component\Process\Process;

/** The package that Composer installs from an archive of this checkout, in a project with the required packages. */
final class PackageTest extends TestCase
{
    use OwnDirectory;

    private const CHECKOUT = __DIR__ . '/../..';

    protected function setUp(): void
    {
        if (!file_exists(self::CHECKOUT . '/.git') || (new ExecutableFinder())->find('git') === null) {
            self::markTestSkipped('This is no Git checkout, or git is not installed');
        }
        mkdir($this->path(Installation::SPINDLE), recursive: true);
        $this->unpackArchive();
    }

    public function testThePackageHasOnlyWhatAnApplicationUses(): void
    {
        $package = $this->path(Installation::SPINDLE);

        self::assertEqualsCanonicalizing(
            [
                'ARCHITECTURE.md',
                'CHANGELOG.md',
                'LICENSE',
                'README.md',
                'SECURITY.md',
                'bin',
                'composer.json',
                'docs',
                'examples',
                'src',
            ],
            Text::names($package),
        );
        self::assertDirectoryExists("{$package}/docs/how-to");
        self::assertDirectoryDoesNotExist("{$package}/docs/contributing");
    }

    public function testComposerCopiesTheSameFilesFromACheckout(): void
    {
        $this->writeApplication([]);
        $application = $this->path('application');
        LocalPackages::composer($application, $this->path('composer'), 'update');
        $run = new Process([\PHP_BINARY, 'vendor/bin/spindle', 'run', ':::', 'echo hello'], $application);
        $run->run();

        self::assertEqualsCanonicalizing(
            Text::names($this->path(Installation::SPINDLE)),
            Text::names("{$application}/" . Installation::SPINDLE),
        );
        self::assertSame([0, "hello\n", ''], [$run->getExitCode(), $run->getOutput(), $run->getErrorOutput()]);
    }

    #[TestWith(['guzzlehttp/guzzle', '7.5.3'])]
    #[TestWith(['guzzlehttp/promises', '1.5.3'])]
    #[TestWith(['symfony/http-client', '6.4.12'])]
    #[TestWith(['symfony/http-client', '7.1.5'])]
    public function testComposerRefusesAnOptionalPackageThatIsTooOld(string $package, string $version): void
    {
        $this->requireTogether([$package => $version]);

        try {
            LocalPackages::composer($this->path('application'), $this->path('composer'), 'update', '--dry-run');
            self::fail('Composer would install the package');
        } catch (ProcessFailedException $failed) {
            self::assertStringContainsString(
                "conflicts with {$package} {$version}",
                $failed->getProcess()->getErrorOutput(),
            );
        }
    }

    public function testComposerAcceptsOptionalPackagesThatAreNewEnough(): void
    {
        $this->requireTogether([
            'guzzlehttp/guzzle' => '7.9.0',
            'guzzlehttp/promises' => '2.0.1',
            'predis/predis' => '3.0.0',
            'symfony/http-client' => '6.4.16',
        ]);

        $this->expectNotToPerformAssertions();
        LocalPackages::composer($this->path('application'), $this->path('composer'), 'update', '--dry-run');
    }

    public function testABrokerWithoutPredisSaysWhatToInstall(): void
    {
        $message = 'RedisBroker needs predis/predis 3.0 or newer, which is not installed;'
            . ' install it: composer require predis/predis:^3.0';
        $work = $this->spindle('work', '--queue', 'q', '--broker', 'redis://localhost');
        $create = 'require "vendor/autoload.php"; new Spindle\Remote\RedisBroker("redis://localhost");';
        $script = new Process([\PHP_BINARY, '-r', $create], $this->path());
        $script->run();
        $output = $script->getOutput() . $script->getErrorOutput();

        self::assertSame([255, "spindle: {$message}\n"], [$work->getExitCode(), $work->getErrorOutput()]);
        self::assertStringContainsString("LogicException: {$message}", $output);
    }

    public function testTheCommandNeedsOnlyTheRequiredPackages(): void
    {
        $process = $this->spindle('run', ':::', 'echo hello');

        self::assertSame(
            [0, "hello\n", ''],
            [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
        );
    }

    public function testItsExamplesRunInAnApplication(): void
    {
        $this->complete();
        $process = new Process([\PHP_BINARY, Installation::SPINDLE . '/examples/commands.php'], $this->path());
        $process->run();

        self::assertSame([0, ''], [$process->getExitCode(), $process->getErrorOutput()]);
        self::assertMatchesRegularExpression('/^[1-9]\d* succeeded, 0 failed$/m', $process->getOutput());
    }

    public function testTheBenchmarksNeedACheckout(): void
    {
        $process = $this->spindle('bench', 'commands', '-n', '1');

        $script = $this->path(Installation::SPINDLE . '/bench/commands.php');
        self::assertSame(
            [
                255,
                '',
                "spindle: benchmark commands can't run: {$script} does not exist, because the Composer package of"
                    . ' Spindle contains no benchmarks; run composer install and bin/spindle bench in a Git checkout of'
                    . " Spindle\n",
            ],
            [$process->getExitCode(), $process->getOutput(), $process->getErrorOutput()],
        );
    }

    /**
     * Writes an application that requires Spindle and other packages, which contain nothing.
     *
     * @param array<string, string> $versions by package
     */
    private function requireTogether(array $versions): void
    {
        $repositories = [];
        foreach ($versions as $package => $version) {
            $empty = ['name' => $package, 'version' => $version, 'type' => 'metapackage'];
            $repositories[] = ['type' => 'package', 'package' => $empty];
        }
        $this->writeApplication($versions, ...$repositories);
    }

    /**
     * @param array<string, string> $required versions of packages that the application requires in addition to Spindle
     * @param array<string, mixed>  ...$first repositories that Composer asks first
     */
    private function writeApplication(array $required, array ...$first): void
    {
        if ((new ExecutableFinder())->find('composer') === null) {
            self::markTestSkipped('Composer is not installed');
        }
        $options = ['symlink' => false, 'versions' => [Installation::NAME => ConsoleApplication::VERSION]];
        $checkout = ['type' => 'path', 'url' => (string) realpath(self::CHECKOUT), 'options' => $options];
        mkdir($this->path('application'));
        file_put_contents($this->path('application/composer.json'), json_encode([
            'require' => [Installation::NAME => '^' . ConsoleApplication::VERSION, ...$required],
            'repositories' => LocalPackages::repositories($checkout, ...$first),
        ], \JSON_THROW_ON_ERROR));
    }

    private function spindle(string ...$arguments): Process
    {
        $this->complete();
        $process = new Process(
            [\PHP_BINARY, Installation::SPINDLE . '/bin/spindle', ...array_values($arguments)],
            $this->path(),
        );
        $process->run();

        return $process;
    }

    /** Installs the required packages. */
    private function complete(): void
    {
        $composer = json_decode(
            (string) file_get_contents($this->path(Installation::SPINDLE . '/composer.json')),
            true,
            flags: \JSON_THROW_ON_ERROR,
        );
        self::assertIsArray($composer);
        self::assertIsArray($composer['require']);
        $required = array_filter(array_keys($composer['require']), \is_string(...));
        Installation::complete($this->path(), array_values($required));
    }

    /** Unpacks what `git archive` makes of the present files of this checkout, including uncommitted ones. */
    private function unpackArchive(): void
    {
        $environment = [
            'GIT_INDEX_FILE' => $this->path('index'),
            'GIT_OBJECT_DIRECTORY' => $this->path('objects'),
            'GIT_ALTERNATE_OBJECT_DIRECTORIES' => $this->gitPath('objects'),
        ];
        mkdir($this->path('objects'));
        copy($this->gitPath('index'), $this->path('index'));
        $this->git(['add', '--all'], $environment);
        $tree = $this->git(['write-tree'], $environment);
        $this->git(['archive', '--output', $this->path('archive.tar'), $tree], $environment);
        $unpack = ['tar', '-xf', $this->path('archive.tar'), '-C', $this->path(Installation::SPINDLE)];
        (new Process($unpack))->mustRun();
    }

    private function gitPath(string $name): string
    {
        return $this->git(['rev-parse', '--path-format=absolute', '--git-path', $name]);
    }

    /**
     * @param list<string>          $arguments
     * @param array<string, string> $environment
     */
    private function git(array $arguments, array $environment = []): string
    {
        // The checkout may belong to another user.
        $command = ['git', '-c', 'safe.directory=*', ...$arguments];

        return trim((new Process($command, self::CHECKOUT, $environment))->mustRun()->getOutput());
    }
}
