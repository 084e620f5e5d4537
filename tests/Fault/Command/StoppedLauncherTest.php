<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\StartMethod;
use Spindle\LauncherException;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Processes;
use Spindle\Tests\TidyTestCase;

/** A stopped launcher (SIGSTOP) does not block its pool forever, and a healthy one does not count as dead. */
final class StoppedLauncherTest extends TidyTestCase
{
    use CatchesThrown;
    use OwnDirectory;

    private const VARIABLE = 'SPINDLE_STOPPED_TEST';

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testACommandThatStopsItsLauncherFailsAndEnds(StartMethod $start): void
    {
        $pid = 0;
        $command = Command::shell(
            'kill -STOP $PPID; echo $$ > ' . $this->path('pid') . '; sleep 100',
        )->withTimeout(0.2);
        $exception = self::thrown(LauncherException::class, fn() => $this->pool($start)->execute($command));
        $pid = (int) file_get_contents($this->path('pid'));
        self::assertStringContainsString('it was stopped', $exception->getMessage());

        self::assertFalse(Processes::isAlive($pid));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAPoolWhoseLauncherIsStoppedCloses(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $pid = (int) $pool->execute(Command::shell('(setsid sleep 100 & echo $!)'))->stdout();
        $this->stopLaunchers();
        $since = hrtime(true);
        $pool->kill();

        self::assertFalse(Processes::isAlive($pid));
        self::assertLessThan(4.0, (hrtime(true) - $since) / 1e9);
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testALauncherThatIsStoppedAgainAndAgainCloses(StartMethod $start): void
    {
        $pool = $this->pool($start);
        $go = $this->path('go');
        $pool->execute(Command::shell(
            "(trap '' TERM; while [ ! -e {$go} ]; do sleep 0.05; done; while :; do kill -STOP \$PPID;"
            . ' done) > /dev/null 2>&1 &',
        ));
        touch($go);
        [$launcher] = Processes::launchers();
        Eventually::holdsByItself(static fn(): bool => Processes::state($launcher) === 'T', 'it is stopped');
        $pool->kill();

        self::assertSame([], Processes::launchers());
    }

    public function testNothingSurvivesAProcessThatIsKilledWhileItsLauncherIsStopped(): void
    {
        if (!LauncherPhp::hasFfi()) {
            self::markTestSkipped('Only the launcher with FFI is continued by the death of its process');
        }
        $mark = bin2hex(random_bytes(8));
        $host = Host::start(
            self::class . '::stopAndWait',
            [$this->path('stopped')],
            environment: [self::VARIABLE => $mark],
        );
        Eventually::holdsByItself(fn(): bool => is_file($this->path('stopped')), 'its launcher is stopped');
        $host->signal(\SIGKILL);
        $host->wait();

        Eventually::holdsByItself(
            static fn(): bool => Processes::withVariable(self::VARIABLE, $mark) === [],
            'nothing is left',
            3.0,
        );
    }

    public static function stopAndWait(string $file): void
    {
        $line = "kill -STOP \$PPID; touch {$file}; sleep 100";
        $options = new CommandPoolOptions(startMethod: StartMethod::PosixSpawn);
        (new CommandPool(1, 0, $options))->execute(Command::shell($line));
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testAProcessThatWasStoppedOrBlockedFindsItsLauncherWell(StartMethod $start): void
    {
        $host = Host::start(self::class . '::pause', [$start->value, $this->path('running')]);
        Eventually::holdsByItself(fn(): bool => is_file($this->path('running')), 'its command runs');
        // First with its launchers, like a container that is paused, then without them.
        $launchers = Processes::launchers((int) $host->getPid());
        foreach ([[...$launchers, (int) $host->getPid()], [(int) $host->getPid()]] as $stopped) {
            array_map(static fn(int $pid): bool => posix_kill($pid, \SIGSTOP), $stopped);
            usleep(4_200_000); // longer than a stopped launcher may be silent
            array_map(static fn(int $pid): bool => posix_kill($pid, \SIGCONT), array_reverse($stopped));
        }
        $host->wait();

        self::assertStringContainsString('"after\n"', $host->getOutput(), $host->getErrorOutput());
    }

    public static function pause(string $start, string $file): string
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));

        return $pool->execute(Command::shell("touch {$file}; sleep 9.2; echo after"))->stdout();
    }

    private function pool(StartMethod $start): CommandPool
    {
        return new CommandPool(1, 0, new CommandPoolOptions(startMethod: $start));
    }

    private function stopLaunchers(): void
    {
        foreach (Processes::launchers() as $launcher) {
            posix_kill($launcher, \SIGSTOP);
            Eventually::holdsByItself(static fn(): bool => Processes::state($launcher) === 'T', 'it is stopped');
        }
    }
}
