<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerContext;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;
use Symfony\Component\Process\Process;

/** Tests that the PHP of a worker reads the same php.ini files as the caller, and pools with open_basedir. */
final class PhpConfigurationTest extends TestCase
{
    use OwnDirectory;

    /** Tools that restart themselves without Xdebug use these options. */
    public function testWithTheOptionsNAndCAWorkerReadsOnlyTheFileOfTheOptionC(): void
    {
        $configuration = '';
        foreach ([php_ini_loaded_file(), ...explode(',', (string) php_ini_scanned_files())] as $file) {
            $path = trim((string) $file);
            $configuration .= $path === '' ? '' : @file_get_contents($path) . "\n";
        }
        $ini = $this->file('own.ini', $configuration);
        $autoloader = var_export(\dirname(__DIR__, 3) . '/vendor/autoload.php', true);
        $script = $this->file('script.php', <<<PHP
            <?php
            require {$autoloader};
            \$pool = new Spindle\\Worker\\WorkerPool(1);
            \$files = \$pool->submit(static fn(): array => [php_ini_loaded_file(), php_ini_scanned_files()])->await();
            echo json_encode(\$files, JSON_UNESCAPED_SLASHES);
            PHP);

        $process = new Process([\PHP_BINARY, '-n', '-c', $ini, $script]);
        $process->mustRun();

        self::assertSame(["[\"{$ini}\",false]", ''], [$process->getOutput(), $process->getErrorOutput()]);
    }

    public function testWorkersStartInADirectoryThatOpenBasedirHides(): void
    {
        $directories = implode(':', [\dirname(\PHP_BINARY), \dirname(__DIR__, 3), sys_get_temp_dir()]);
        $within = ['/bin/sh', '-c', 'cd / && exec "$@"', 'sh'];

        $options = ['-d', "open_basedir={$directories}"];
        $run = self::class . '::directories';
        self::assertSame(['/', '/', ''], Host::call($run, ['', ''], $within, options: $options));
    }

    public function testFilesThatOpenBasedirHidesHaveNotChanged(): void
    {
        $directories = implode(':', [\dirname(\PHP_BINARY), sys_get_temp_dir()]);
        $folder = \dirname(__DIR__, 3);

        self::assertSame(
            [$folder, $folder, "{$folder}\n"],
            Host::call(self::class . '::directories', [$directories, 'pwd'], ['/usr/bin/env', '--chdir', $folder]),
        );
    }

    public function testAClosureOfAFileThatOpenBasedirHidesLaterIsSent(): void
    {
        $directories = implode(':', [\dirname(\PHP_BINARY), \dirname(__DIR__, 3)]);
        $code = '<?php return static fn(): string => "from a file";';
        $files = [$this->file('sent.php', $code), $this->file('new.php', $code)];

        $outcomes = Host::call(self::class . '::closures', [$directories, ...$files]);
        \assert(\is_array($outcomes) && \is_string($outcomes[2]));
        self::assertSame(['from a file', 'from a file'], \array_slice($outcomes, 0, 2));
        self::assertStringContainsString('whose source is in no file that open_basedir allows', $outcomes[2]);
    }

    /** @return array{mixed, mixed, string} result of the first file's closure before and after ini_set(); message */
    public static function closures(string $directories, string $sent, string $new): array
    {
        set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
        $pool = new WorkerPool(1);
        $closures = [require $sent, require $new];
        \assert($closures[0] instanceof \Closure && $closures[1] instanceof \Closure);
        [$sentClosure, $newClosure] = $closures;
        $first = $pool->submit($sentClosure)->await();
        ini_set('open_basedir', $directories);
        $second = $pool->submit($sentClosure)->await();
        try {
            $pool->submit($newClosure)->await();

            return [$first, $second, ''];
        } catch (UnserializableException $refusal) {
            return [$first, $second, $refusal->getMessage()];
        }
    }

    /**
     * @param string $directories value of open_basedir after the first task of each pool; '' to leave it unchanged
     * @param string $command program to run in a pool; '' for none
     *
     * @return list<mixed> working directories of workers, and the command's output
     */
    public static function directories(string $directories, string $command): array
    {
        set_error_handler(static fn(int $level, string $message): never => throw new \ErrorException($message));
        $pools = [];
        foreach ([WorkerContext::Process, WorkerContext::Fork] as $context) {
            $pools[] = $pool = new WorkerPool(1, options: new WorkerPoolOptions(context: $context, maxTasks: 1));
            $directories === '' ? null : $pool->submit('getcwd')->await();
        }
        $commands = new CommandPool(1);
        if ($directories !== '') {
            $commands->execute(Command::of('true'));
            ini_set('open_basedir', $directories);
        }
        $run = static fn(WorkerPool $pool): mixed => $pool->submit('getcwd')->await();

        return [...array_map($run, $pools), $command === '' ? '' : $commands->execute(Command::of($command))->stdout()];
    }
}
