<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Remote;

use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\Clock;
use Spindle\Internal\Launcher\Process\ProcessTree;
use Spindle\LauncherException;
use Spindle\Remote\Internal\AgentPools;
use Spindle\Remote\Internal\LeaseGuard;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;
use Spindle\Worker\ResultBudget;
use Symfony\Component\Process\Process;

/** The helper process of an agent. */
final class LeaseGuardTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;

    public function testTheHelperHasNoSocketOfTheAgent(): void
    {
        $sockets = stream_socket_pair(\STREAM_PF_UNIX, \STREAM_SOCK_STREAM, 0);
        self::assertIsArray($sockets);
        $guard = new LeaseGuard();
        $pid = $this->startedPid($guard);
        fclose($sockets[0]);
        stream_set_timeout($sockets[1], 5);

        self::assertSame('', fread($sockets[1], 1), 'the other end is closed');
        self::assertTrue(feof($sockets[1]));
        self::assertTrue(Processes::isAlive($pid));
        $guard->close();
    }

    public function testAnAgentsOptionForThePathToPhpAppliesToTheGuardAndTheLaunchers(): void
    {
        $started = $this->path('started');
        $php = LauncherPhp::wrapper($this->path(), 'echo "$*" >> ' . escapeshellarg($started));
        $noExecutor = static fn(): never => self::fail('no task runs');
        $pools = new AgentPools($noExecutor, 1, 1.0, new ResultBudget(1 << 20), true, $php);

        self::assertTrue($pools->commands()->execute(Command::of('true'))->succeeded());
        $pools->close();
        $lines = (string) file_get_contents($started);
        self::assertStringContainsString('lease-guard.php', $lines);
        self::assertStringContainsString('Launcher/Process/main.php', $lines);
    }

    public function testTheErrorAboutAWrongPathToPhpNamesTheOptionOfTheAgentsPool(): void
    {
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessage("'/no/such/php' is not an executable file. Set its path with WorkerPoolOptions(");
        (new LeaseGuard('/no/such/php'))->start();
    }

    public function testAGuardThatDoesNotBecomeReadyIsAnError(): void
    {
        $guard = new LeaseGuard($this->unusablePhp());
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessage('lease guard did not become ready. Check that WorkerPoolOptions(php:)');
        $guard->start();
        Eventually::holds(static function () use ($guard): bool {
            $guard->extend(\INF);

            return false;
        }, 'it is noticed');
    }

    public function testASuspendedGuardDoesNotDelayTheEnd(): void
    {
        $guard = new LeaseGuard();
        $pid = $this->startedPid($guard);
        posix_kill($pid, \SIGSTOP);
        $guard->close();

        self::assertFalse(Processes::isAlive($pid));
    }

    public function testAGuardThatWasKilledIsStartedAgain(): void
    {
        $guard = new LeaseGuard();
        $first = $this->startedPid($guard);
        Eventually::holds(static fn(): bool => !file_exists("/proc/{$first}/fd/1"), 'it is ready');
        $guard->extend(\INF);
        posix_kill($first, \SIGKILL);
        Eventually::holds(static function () use ($guard, $first): bool {
            $guard->extend(\INF);

            return !Processes::isAlive($first);
        }, 'another takes its place');
        self::assertNotSame([], Processes::childrenOf((int) getmypid()));
        $guard->close();
    }

    public function testAGuardThatWasSuspendedForLongUsesTheNewestTime(): void
    {
        $guard = new LeaseGuard();
        $pid = $this->suspendedPid($guard);
        $sleeping = new Process(['sleep', '1000']);
        $sleeping->start();
        for ($i = 0; $i < 1000; ++$i) {
            $guard->extend(Clock::now() - 1.0);
        }
        $guard->extend(Clock::now() + 1000.0);
        posix_kill($pid, \SIGCONT);
        Eventually::holds(static fn(): bool => ProcessTree::state($pid) === 'S', 'it waits again');

        self::assertTrue($sleeping->isRunning());
        $guard->extend(Clock::now() - 1.0);
        Eventually::holds(static fn(): bool => !$sleeping->isRunning(), 'it kills when it is time');
        $guard->close();
    }

    public function testTheGuardsOfTwoQueuesDoNotEndEachOther(): void
    {
        [$guards, $pids] = [[new LeaseGuard(), new LeaseGuard()], []];
        foreach ($guards as $guard) {
            $pids[] = $pid = $this->startedPid($guard);
            Eventually::holds(static fn(): bool => !file_exists("/proc/{$pid}/fd/1"), 'it is ready');
        }
        foreach ($guards as $guard) {
            $sleeping = new Process(['sleep', '1000']);
            $sleeping->start();
            $guard->extend(Clock::now() - 1.0);
            Eventually::holds(static fn(): bool => !$sleeping->isRunning(), 'it kills when it is time');
        }

        self::assertSame([true, true], array_map(Processes::isAlive(...), $pids));
        $guards[0]->close();
        $guards[1]->close();
    }

    public function testGuardsInAPharEndJobsAndNotEachOther(): void
    {
        $build = '$phar = new Phar($argv[1]); $phar->buildFromDirectory($argv[2]);';
        $command = [\PHP_BINARY, '-d', 'phar.readonly=0', '-r', $build, '--', $this->path('program.phar')];
        (new Process([...$command, \dirname(__DIR__, 3) . '/src']))->mustRun();

        $outcome = Host::call(self::class . '::guardFrom', ["phar://{$this->path('program.phar')}"]);
        self::assertSame([false, [true, true]], $outcome);
    }

    /** @return array{bool, list<bool>} whether the process of a job is alive after the kill, and each guard */
    public static function guardFrom(string $source): array
    {
        spl_autoload_register(static function (string $class) use ($source): void {
            $file = $source . strtr(substr($class, \strlen('Spindle')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Spindle\\') && is_file($file)) {
                require $file;
            }
        }, prepend: true);
        $guards = [new LeaseGuard(), new LeaseGuard()];
        array_map(static fn(LeaseGuard $guard) => $guard->start(), $guards);
        $pids = array_keys(Processes::childrenOf((int) getmypid()));
        foreach ($pids as $pid) {
            Eventually::holds(static fn(): bool => !file_exists("/proc/{$pid}/fd/1"), 'it is ready');
        }
        $job = new Process(['sleep', '1000']);
        $job->start();
        $guards[0]->extend(Clock::now() - 1.0);
        Eventually::holds(static fn(): bool => !$job->isRunning(), 'it kills when it is time');

        return [$job->isRunning(), array_map(Processes::isAlive(...), $pids)];
    }

    public function testAGuardThatReadsNothingIsReplaced(): void
    {
        $guard = new LeaseGuard();
        $pid = $this->suspendedPid($guard);
        for ($i = 0; $i < 100_000 && Processes::isAlive($pid); ++$i) {
            $guard->extend(\INF);
        }

        self::assertFalse(Processes::isAlive($pid));
        self::assertNotSame([], Processes::childrenOf((int) getmypid()));
        $guard->close();
    }

    public function testCommandsThatNoLauncherCouldStartHaveNotStarted(): void
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(rerunAfterCrash: true, php: $this->unusablePhp()));
        $failure = self::thrown(LauncherException::class, static fn() => $pool->execute(Command::of('true')));
        self::assertStringStartsWith('Launchers ended repeatedly before they were ready', $failure->getMessage());
        self::assertStringContainsString('option php', $failure->getMessage());
        self::assertStringNotContainsString('rerunAfterCrash', $failure->getMessage());
        self::assertFalse($failure->mayHaveStarted);
        self::assertCount(1, $failure->unfinished);
    }

    /** Starts the guard, and suspends it once it is ready. */
    private function suspendedPid(LeaseGuard $guard): int
    {
        $pid = $this->startedPid($guard);
        Eventually::holds(static fn(): bool => !file_exists("/proc/{$pid}/fd/1"), 'it is ready');
        $guard->extend(\INF);
        posix_kill($pid, \SIGSTOP);
        Eventually::holds(static fn(): bool => ProcessTree::state($pid) === 'T', 'it is suspended');

        return $pid;
    }

    /** Starts the guard, and returns the id of its process. */
    private function startedPid(LeaseGuard $guard): int
    {
        $others = Processes::childrenOf((int) getmypid());
        $guard->start();
        $pids = array_keys(array_diff_key(Processes::childrenOf((int) getmypid()), $others));
        self::assertCount(1, $pids);

        return $pids[0];
    }

    /** Returns the path of a program that exits immediately. */
    private function unusablePhp(): string
    {
        $path = $this->path('php');
        file_put_contents($path, "#!/bin/sh\nexit 1\n");
        chmod($path, 0o755);

        return $path;
    }
}
