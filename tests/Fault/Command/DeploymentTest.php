<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\ConsoleApplication;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\LauncherException;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerStartException;
use Symfony\Component\Process\Process;

/** Spindle's source files are replaced while a pool lives. */
final class DeploymentTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    #[TestWith(['rewritten', true])]
    #[TestWith(['edited', true])]
    #[TestWith(['changed', false])]
    #[TestWith(['gone', false])]
    public function testANewLauncherNeedsTheSourceThatTheProcessHasLoaded(string $how, bool $works): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $messages = Host::call(self::class . '::deploy', [$this->path('src'), $how]);

        self::assertIsArray($messages);
        foreach ($messages as $message) {
            self::assertIsString($message);
            self::assertSame($works, $message === '', $message);
            $expected = "its source files in {$this->path('src')} have changed since this process loaded them, or"
                . " can't be read";
            self::assertStringContainsString($works ? '' : $expected, $message);
        }
    }

    /** An older version has left a class, and tar of macOS has written the attributes of a file into a second file. */
    #[TestWith(['Former.php', '<?php namespace Spindle; final class Former implements FormerInterface {}'])]
    #[TestWith(['._Backend.php', "\0\x05\x16\x07\0\x02\0\0Mac OS X"])]
    public function testALauncherLoadsNoOtherFilesOfItsFolder(string $name, string $contents): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        file_put_contents($this->path("src/Internal/Launcher/Process/{$name}"), $contents);

        self::assertSame(['', ''], Host::call(self::class . '::deploy', [$this->path('src'), 'rewritten']));
    }

    public function testTheCommandReportsThatItsFilesAreGone(): void
    {
        $root = \dirname(__DIR__, 3);
        (new Process(['cp', '-R', "{$root}/src", $this->path('src')]))->mustRun();
        $code = <<<'PHP'
            [, $root, $source] = $argv;
            (require "{$root}/vendor/autoload.php")->setPsr4('Spindle\\', "{$source}/");
            $input = new class(['command' => 'run']) extends Symfony\Component\Console\Input\ArrayInput {
                public function setInteractive(bool $interactive): void
                {
                    rename($GLOBALS['source'], "{$GLOBALS['source']}.old");
                }
            };
            exit((new Spindle\Cli\ConsoleApplication())->run($input));
            PHP;
        $process = new Process([\PHP_BINARY, '-r', $code, '--', $root, $this->path('src')]);

        self::assertSame(254, $process->run(), $process->getOutput());
        self::assertStringStartsWith('spindle: Error: Class "Spindle', $process->getErrorOutput());
    }

    /** A web server's OPcache may keep the previous version, so that a pool is created after the deployment. */
    public function testALauncherOfAnotherVersionIsRefused(): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $messages = Host::call(self::class . '::update', [$this->path('src')]);

        $expected = "the pool's process has loaded Spindle " . ConsoleApplication::VERSION
            . ', but the files on disk are of Spindle 99.9.9, as after a deployment. Restart the process';
        self::assertIsArray($messages);
        self::assertCount(2, $messages);
        foreach ($messages as $message) {
            self::assertIsString($message);
            self::assertStringContainsString($expected, $message);
        }
    }

    /** @return list<string> failures of a command and of a task */
    public static function update(string $source): array
    {
        self::load($source);
        $file = "{$source}/Internal/Launcher/LauncherProtocol.php";
        $version = LauncherProtocol::VERSION;
        file_put_contents($file, str_replace($version, '99.9.9', (string) file_get_contents($file)));
        try {
            $result = (new WorkerPool(1))->submit('getmypid')->await();
        } catch (WorkerStartException $exception) {
            $result = $exception->getMessage();
        }

        return [self::outcome(new CommandPool(1)), (string) $result];
    }

    /** Loads the classes of Spindle from the copy. */
    private static function load(string $source): void
    {
        spl_autoload_register(static function (string $class) use ($source): void {
            $file = $source . strtr(substr($class, \strlen('Spindle')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Spindle\\') && is_file($file)) {
                require $file;
            }
        }, prepend: true);
    }

    /** @return list<string> */
    public static function deploy(string $source, string $how): array
    {
        self::load($source);
        $pool = new CommandPool(1);
        $pool->execute(Command::of('true'));
        $protocol = "{$source}/Internal/Launcher/LauncherProtocol.php";
        $text = (string) file_get_contents($protocol);
        match ($how) {
            'rewritten' => file_put_contents($protocol, $text),
            'edited' => symlink('user@host.1', "{$source}/Internal/Launcher/Process/.#Backend.php"), // as Emacs does
            'changed' => file_put_contents($protocol, str_replace('RUN = 3', 'RUN = 2', $text)),
            default => rename($source, "{$source}.old"),
        };
        foreach (Processes::launchers() as $launcher) {
            posix_kill($launcher, \SIGKILL);
            Eventually::holdsByItself(static fn(): bool => !Processes::isAlive($launcher), 'The launcher is gone', 30);
        }

        return [self::outcome($pool), self::outcome($pool)];
    }

    private static function outcome(CommandPool $pool): string
    {
        try {
            return (string) $pool->execute(Command::of('true'))->error;
        } catch (LauncherException $exception) {
            return $exception->getMessage();
        }
    }
}
