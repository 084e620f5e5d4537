<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\CancelledException;
use PHPUnit\Framework\Attributes\Group;
use Spindle\Postgres\CheckViolationException;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\DeadlockException;
use Spindle\Postgres\ExclusionViolationException;
use Spindle\Postgres\ForeignKeyViolationException;
use Spindle\Postgres\NotNullViolationException;
use Spindle\Postgres\QueryCancelledException;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\SerializationFailureException;
use Spindle\Postgres\UniqueViolationException;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Scale;
use Spindle\Tests\Text;
use Spindle\Tests\TidyTestCase;

/** Tests a process with connections that is killed, or lacks resources. */
final class ProcessFaultsTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesCluster;

    /** In seconds. The session asks the server to check its clients every 2 s. */
    private const NOTICED_WITHIN = 4.0;

    /** Seconds after which nothing is left, even on a busy machine. */
    private const GONE_WITHIN = 20.0;

    protected function deadline(): int
    {
        return 120 + 2 * Scale::of(50);
    }

    #[Group('quiet')]
    public function testTheServerStopsWhatItDoesForProcessesThatAreKilled(): void
    {
        $processes = [];
        $addresses = [
            'on_a_socket' => Cluster::shared()->dsn(application_name: 'on_a_socket'),
            'on_tcp' => Cluster::shared()->tcpDsn(application_name: 'on_tcp', sslmode: 'disable'),
        ];
        foreach ($addresses as $name => $dsn) {
            $processes[$name] = Host::start(ProcessPrograms::class . '::query', [$dsn, $this->path($name)]);
        }
        foreach ($addresses as $name => $_) {
            Eventually::holds(fn(): bool => is_file($this->path($name)), 'it has begun', 10);
            $busy = static fn(): int => self::backends($name, "AND state = 'active' AND wait_event = 'PgSleep'");
            Eventually::holds(static fn(): bool => $busy() === 3, 'the server works', 10);
        }
        foreach ($processes as $process) {
            $process->signal(\SIGKILL);
        }

        $left = static fn(): int => self::backends('on_a_socket') + self::backends('on_tcp');
        Eventually::holds(static fn(): bool => $left() === 0, 'nothing is done for nobody', self::NOTICED_WITHIN);
        foreach ($processes as $process) {
            $process->wait();
        }
    }

    public function testAfterASigkillAtAnyMomentNothingIsLeft(): void
    {
        mt_srand(Scale::seed());
        $processes = [];
        for ($i = Scale::of(50); $i > 0; --$i) {
            $name = "killed_{$i}";
            mkdir($this->path($name));
            $process = Host::start(
                ProcessPrograms::class . '::work',
                [Cluster::shared()->dsn(application_name: $name)],
                environment: ['TMPDIR' => $this->path($name)],
            );
            $begins = hrtime(true);
            Eventually::holds(
                static fn(): bool => self::backends($name) > 0 || hrtime(true) - $begins > 10_000_000_000,
                'it has connected',
                12,
            );
            self::assertTrue($process->isRunning(), $process->getErrorOutput());
            usleep(mt_rand(0, 300_000)); // a random moment
            $process->signal(\SIGKILL);
            $process->wait();
            self::assertSame([], Text::names($this->path($name)), 'no temporary file');
            $processes[] = $name;
        }
        foreach ($processes as $name) {
            Eventually::holds(static fn(): bool => self::backends($name) === 0, 'no backend', self::GONE_WITHIN);
        }
        self::assertSame([], Cluster::ask("SELECT pid FROM pg_locks WHERE locktype = 'advisory'"));
    }

    public function testAPoolThatGetsNoDescriptorForAnotherConnectionDoesWithThoseThatItHas(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::needDescriptors',
            [Cluster::shared()->dsn(), 60],
            ['/bin/sh', '-c', 'ulimit -n 24; exec "$@"', 'sh'],
        );

        self::assertSame(array_map(strval(...), range(1, 60)), $outcomes);
    }

    public function testWithoutADescriptorConnectingFailsWithThatReason(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::useUpDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );
        self::assertIsArray($outcomes);
        $reason = 'too many open files';

        foreach (['pool without', 'connection without'] as $what) {
            self::assertIsString($outcomes[$what]);
            self::assertStringStartsWith('Spindle\Postgres\ConnectionFailedException: ', $outcomes[$what]);
            self::assertStringContainsString($reason, strtolower($outcomes[$what]));
        }
        self::assertSame(['2', '3', '4'], [$outcomes['pool with'], $outcomes['connection'], $outcomes['pool']]);
        self::assertIsString($outcomes['cancelled']);
        self::assertStringStartsWith('Amp\CancelledException', $outcomes['cancelled']);
        self::assertIsString($outcomes['after the cancellation']);
        self::assertStringContainsString(
            'the request to stop a cancelled statement failed, so the client closed the connection',
            $outcomes['after the cancellation'],
        );
        self::assertSame('6', $outcomes['pool then']);
    }

    public function testWithoutADescriptorAtFirstTheReasonIsReported(): void
    {
        foreach ([
            Cluster::shared()->dsn(),
            Cluster::shared()->tcpDsn(),
            Cluster::shared()->tcpDsn(host: 'name.invalid'),
        ] as $dsn) {
            $outcomes = Host::call(
                ProcessPrograms::class . '::startWithoutDescriptors',
                [$dsn],
                ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
            );
            self::assertIsArray($outcomes);
            foreach ($outcomes as $outcome) {
                self::assertIsString($outcome);
                self::assertMatchesRegularExpression(
                    '/^Spindle.Postgres.(?:PoolTimeout|ConnectionFailed)Exception: .*too many open files/i',
                    $outcome,
                );
            }
        }
    }

    public function testALargeResultAndTheEndOfAPoolNeedNoDescriptor(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::closeWithoutDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );
        self::assertSame(['5000', '"closed"'], $outcomes);
    }

    public function testFirstStatementsWithoutADescriptorHaveTheirOutcomes(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::executeWithoutDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );
        self::assertIsArray($outcomes);

        self::assertSame(
            [
                '1',
                '11',
                '1',
                '1',
                '1',
                QueryException::class,
                '1',
                '1',
                NotNullViolationException::class,
                ForeignKeyViolationException::class,
                UniqueViolationException::class,
                CheckViolationException::class,
                ExclusionViolationException::class,
                SerializationFailureException::class,
                DeadlockException::class,
                QueryCancelledException::class,
            ],
            array_map(static fn(mixed $one): string => explode(':', \is_string($one) ? $one : '')[0], $outcomes),
        );
    }

    public function testATransactionWithoutADescriptorCommits(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::commitWithoutDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );

        self::assertSame(['"committed"', '1'], $outcomes);
    }

    public function testWithoutADescriptorAFailureIsStillNamed(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::failWithoutDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 40; exec "$@"', 'sh'],
        );
        self::assertIsArray($outcomes);
        $names = array_map(
            static fn(mixed $outcome): string => \is_string($outcome) ? explode(':', $outcome)[0] : '',
            $outcomes,
        );

        self::assertSame(
            [
                QueryException::class,
                QueryException::class,
                CancelledException::class,
                ConnectionLostException::class,
                ConnectionClosedException::class,
            ],
            $names,
        );
    }

    public function testDescriptorsThatTheLoopCanNotWatchAreReported(): void
    {
        $outcomes = Host::call(
            ProcessPrograms::class . '::useHighDescriptors',
            [Cluster::shared()->dsn()],
            ['/bin/sh', '-c', 'ulimit -n 2000; exec "$@"', 'sh'],
        );
        self::assertIsArray($outcomes);

        self::assertSame('1', $outcomes['before']);
        self::assertSame('[2,3]', $outcomes['pool'], 'by the connection that it has');
        self::assertIsString($outcomes['connection']);
        self::assertMatchesRegularExpression(
            '/^(4$|Spindle\\\\Postgres\\\\ConnectionFailedException: )/',
            $outcomes['connection'],
        );
        self::assertSame(['5', '6'], [$outcomes['after'], $outcomes['connection after']]);
    }

    private static function backends(string $name, string $condition = ''): int
    {
        $sql = "SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = '{$name}' {$condition}";

        return (int) Cluster::ask($sql)[0]['n'];
    }
}
