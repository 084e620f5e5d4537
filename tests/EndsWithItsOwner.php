<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\SpindleException;
use Spindle\Tests\Postgres\Cluster;
use Symfony\Component\Process\Process;

/** Contract of every temporary server: only its owner can use it, and it ends with its owner. */
trait EndsWithItsOwner
{
    use OwnDirectory;

    /** Returns the name of the server in messages. */
    abstract private static function called(): string;

    /** @param float|null $timeout null for the default */
    abstract private static function startOne(?float $timeout = null): TemporaryPostgres|TemporaryRedis;

    /** Starts a server with all the steps that users see, where {@see startOne()} leaves some out. */
    private static function startFromNothing(): TemporaryPostgres|TemporaryRedis
    {
        return self::startOne();
    }

    public function testAServerThatIsStoppedBySignalEndsNevertheless(): void
    {
        $children = Processes::childrenOf((int) getmypid());
        $server = self::startOne();
        self::assertTrue(posix_kill(self::pidOf($server), \SIGSTOP));

        $server->stop();

        self::assertSame($children, Processes::childrenOf((int) getmypid()), 'no zombie either');
        self::assertNothingLeft(self::directoryOf($server));
    }

    public function testItGoesWhenNobodyHoldsItAnyMore(): void
    {
        $server = self::startOne();
        $directory = self::directoryOf($server);
        self::assertDirectoryExists($directory);

        unset($server);

        self::assertNothingLeft($directory);
    }

    public function testAfterItWasStoppedItCanNeitherBeKilledNorRestarted(): void
    {
        $server = self::startOne();
        $server->stop();
        $server->stop();

        try {
            $server->log();
            self::fail('It was stopped');
        } catch (SpindleException $stopped) {
            self::assertSame(
                'The log of the server could not be read: the ' . self::called() . ' was stopped',
                $stopped->getMessage(),
            );
        }
        foreach ([$server->kill(...), $server->restart(...)] as $call) {
            try {
                $call();
                self::fail('It was stopped');
            } catch (\LogicException $stopped) {
                self::assertSame('The ' . self::called() . ' was stopped', $stopped->getMessage());
            }
        }
    }

    public function testItStartsInAFiberAsWell(): void
    {
        self::assertAnswers(Async::run(self::startOne(...))->await());
    }

    public function testTheServerInheritsNoDescriptorOfThisProcess(): void
    {
        [$ours, $theirs] = Streams::pair();
        $server = self::startOne();
        fclose($theirs);

        self::assertSame('', fread($ours, 1), 'nobody else holds the other end open');
        self::assertTrue(feof($ours));
        $server->stop();
    }

    public function testTheNameOfTheTemporaryDirectoryMayHaveAnyBytes(): void
    {
        $temporary = $this->path("it's t\xE9mporary");
        mkdir($temporary);
        chmod($this->path(), 0o777); // the server may have to run as another user
        chmod($temporary, 0o777);
        $environment = ['TMPDIR' => $temporary, 'LC_ALL' => 'C.UTF-8'];
        $directory = Host::call(self::class . '::startAndStop', environment: $environment);
        \assert(\is_string($directory));

        self::assertStringStartsWith("{$temporary}/spindle-", rawurldecode($directory));
        self::assertNothingLeft(rawurldecode($directory));
    }

    /** Runs in another process: returns the directory that the server had, encoded for JSON. */
    public static function startAndStop(): string
    {
        $server = self::startOne();
        $directory = self::directoryOf($server);
        $server->stop();

        return rawurlencode($directory);
    }

    public function testAForkThatInheritsItDoesNotEndIt(): void
    {
        $server = self::startOne();
        $fork = pcntl_fork();
        if ($fork === 0) {
            $this->useInFork($server);
        }
        pcntl_waitpid($fork, $status);

        self::assertSame(\SIGUSR1, $status, 'the signal that ended it');
        self::assertAnswers($server);
    }

    /** Ends the process by SIGUSR1 if everything is as expected. */
    private function useInFork(TemporaryPostgres|TemporaryRedis $server): never
    {
        $server->stop();
        try {
            $server->restart();
        } catch (\LogicException $belongs) {
            if ($belongs->getMessage() === 'The ' . self::called() . ' belongs to the parent process of this fork') {
                unset($belongs, $server);
                posix_kill((int) getmypid(), \SIGUSR1);
            }
        }
        posix_kill((int) getmypid(), \SIGKILL);
        exit(1);
    }

    public function testItGoesWithItsProcessHoweverThatEnds(): void
    {
        foreach ([
            'return',
            'exit',
            'fatal error',
            'SIGTERM',
            'SIGKILL',
            'SIGKILL with a fork',
            'SIGKILL of the whole group',
        ] as $how) {
            $process = Host::start(self::class . '::hold', [$how], ['setsid']);
            $process->waitUntil(static fn(string $type, string $output): bool => str_contains($output, "\n"));
            $directory = trim($process->getOutput());
            self::assertStringStartsWith(sys_get_temp_dir() . '/spindle-', $directory, $process->getErrorOutput());
            $forks = array_filter(
                Processes::childrenOf((int) $process->getPid()),
                static fn(string $line): bool => str_contains($line, 'host.php'),
            );
            match (true) {
                str_ends_with($how, 'group') => posix_kill(-(int) $process->getPid(), \SIGKILL),
                str_starts_with($how, 'SIGKILL') => posix_kill((int) $process->getPid(), \SIGKILL),
                $how === 'SIGTERM' => posix_kill((int) $process->getPid(), \SIGTERM),
                default => null,
            };

            Eventually::holds(static fn(): bool => !file_exists($directory), "{$how}: the directory is gone", 3.0);
            self::assertNothingLeft($directory);
            self::assertCount($how === 'SIGKILL with a fork' ? 1 : 0, $forks);
            array_map(static fn(int $fork): bool => posix_kill($fork, \SIGKILL), array_keys($forks));
            $process->stop(0);
        }
    }

    /** Runs in another process: prints where the server is, then ends or waits to be killed. */
    public static function hold(string $how): void
    {
        $server = $how === 'SIGKILL at the start' ? self::startFromNothing() : self::startOne();
        if ($how === 'SIGKILL with a fork' && pcntl_fork() === 0) {
            sleep(30);
        }
        echo self::directoryOf($server), "\n";
        match ($how) {
            'return' => null,
            'exit' => exit(0),
            'fatal error' => self::exhaust(),
            default => sleep(30),
        };
    }

    public function testItGoesWithAProcessThatIsKilledWhileItStarts(): void
    {
        chmod($this->path(), 0o777); // the server may have to run as another user
        for ($i = 1; $i <= 8; ++$i) {
            $process = new Process(
                [\PHP_BINARY, __DIR__ . '/host.php', self::class . '::hold', '["SIGKILL at the start"]'],
                null,
                ['TMPDIR' => $this->path()],
            );
            $process->start();
            Eventually::holds(fn(): bool => $this->directories() !== [], 'there is a directory');
            usleep($i * self::MICROSECONDS_INTO_START);
            posix_kill((int) $process->getPid(), \SIGKILL);
            $process->stop(0);

            Eventually::holds(fn(): bool => $this->directories() === [], 'the directory is gone', 3.0);
        }
    }

    public function testItIsRemovedAlsoWhenItsGuardianIsGone(): void
    {
        $server = self::startOne();
        $directory = self::directoryOf($server);
        $guardians = array_filter(
            Processes::childrenOf((int) getmypid()),
            static fn(string $line): bool => str_ends_with($line, $directory) && str_contains($line, '/guardian.php'),
        );
        self::assertCount(1, $guardians);
        posix_kill(array_key_first($guardians), \SIGKILL);

        $server->stop();

        self::assertNothingLeft($directory);
    }

    public function testAServerThatTakesTooLongIsTold(): void
    {
        for ($start = 1; $start <= 20; ++$start) {
            try {
                self::startOne(0.000_1)->stop(); // the server was ready before the first check
            } catch (SpindleException $failure) {
                $expected = '/^The \w+ server was not ready within 0.0001 seconds/';
                self::assertMatchesRegularExpression($expected, $failure->getMessage());

                return;
            }
        }
        self::fail('It started');
    }

    private static function assertAnswers(TemporaryPostgres|TemporaryRedis $server): void
    {
        self::assertSame(
            '1',
            $server instanceof TemporaryRedis
                ? $server->command('ECHO', '1')
                : Cluster::ask('SELECT 1 AS one', $server->dsn())[0]['one'] ?? null,
        );
    }

    private static function directoryOf(TemporaryPostgres|TemporaryRedis $server): string
    {
        return $server instanceof TemporaryRedis ? $server->directory : $server->host;
    }

    private static function pidOf(TemporaryPostgres|TemporaryRedis $server): int
    {
        return (int) ($server instanceof TemporaryRedis ? $server->pid() : $server->postmasterPid());
    }

    private static function assertNothingLeft(string $directory): void
    {
        self::assertDirectoryDoesNotExist($directory);
        Eventually::holdsByItself(static fn(): bool => self::processesOf($directory) === [], 'no process is left');
    }

    /** @return list<string> command lines */
    private static function processesOf(string $directory): array
    {
        $lines = array_map(
            static fn(string $pid): string => (int) $pid > 0 ? Processes::commandLine((int) $pid) : '',
            Text::names('/proc'),
        );

        return array_values(array_filter(
            $lines,
            static fn(string $line): bool => str_contains($line, basename($directory)),
        ));
    }

    private static function exhaust(): never
    {
        ini_set('memory_limit', (string) (memory_get_usage() + 4_000_000));
        $bytes = 'x';
        while (true) {
            $bytes .= $bytes;
        }
    }

    /** @return list<string> names of directories of temporary servers */
    private function directories(): array
    {
        return array_values(array_filter(
            Text::names($this->path()),
            static fn(string $name): bool => str_starts_with($name, 'spindle-'),
        ));
    }
}
