<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use Spindle\Postgres\Testing\TemporaryPostgresOptions;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Postgres\Certificates;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\TidyTestCase;

/** Tests that a fork, which inherits the connections of its process, leaves them alone. */
#[RequiresPhpExtension('pcntl')]
final class ForkTest extends TidyTestCase
{
    use ComesToRest;
    use OwnDirectory;
    use UsesCluster;

    private const AS_BEFORE = ['connection' => '3', 'pool' => '1', 'lost' => 0];

    /** @return iterable<string, array{bool}> */
    public static function addresses(): iterable
    {
        yield 'a Unix socket' => [false];
        yield 'TCP' => [true];
    }

    #[DataProvider('addresses')]
    public function testAForkThatExitsLeavesTheConnectionsOfItsProcessAlone(bool $tcp): void
    {
        self::assertSame(
            ['exited' => 7, 'stream' => 1000, 'copy' => 2000, 'borrowed' => 5, ...self::AS_BEFORE],
            Host::call(ForkPrograms::class . '::exit', [self::dsn($tcp)]),
        );
    }

    public function testAForkThatExitsRunsNoCodeAfterACallOfItsProcess(): void
    {
        $arguments = [Cluster::shared()->dsn(), $this->path('failure')];

        self::assertSame([7, 5, false], Host::call(ForkPrograms::class . '::exitDuringACall', $arguments));
    }

    #[DataProvider('addresses')]
    public function testAForkThatLetsGoOfTheConnectionsOfItsProcessLeavesThemAlone(bool $tcp): void
    {
        self::assertSame(
            ['exited' => 7, 'stream' => 1000, 'borrowed' => 5, ...self::AS_BEFORE],
            Host::call(ForkPrograms::class . '::letGo', [self::dsn($tcp)]),
        );
    }

    public function testAForkIsRefusedWhateverItCalls(): void
    {
        $answer = Host::call(ForkPrograms::class . '::refuse', [Cluster::shared()->dsn(), $this->path('told')]);
        self::assertIsArray($answer);
        ['told' => $outcomes] = $answer;
        self::assertIsArray($outcomes);
        self::assertSame(
            [],
            array_filter($outcomes, static fn(mixed $one): bool => $one !== 'refused'),
            'what was not refused',
        );
        self::assertCount(24, $outcomes);
        self::assertSame(
            ['transaction' => [7, 6], 'stream' => 1000, 'borrowed' => 5, ...self::AS_BEFORE],
            array_diff_key($answer, ['told' => 0]),
        );
    }

    public function testAForkIsRefusedWithTheSameExceptionHoweverLongTheConnectionWasIdle(): void
    {
        foreach ([0.0, 1e6] as $validateAfter) {
            self::assertSame(
                ['told' => array_fill(0, 3, \LogicException::class), ...self::AS_BEFORE],
                Host::call(
                    ForkPrograms::class . '::refuseAfterIdleness',
                    [Cluster::shared()->dsn(), $this->path('told'), $validateAfter],
                ),
            );
        }
    }

    public function testAForkThatTurnsTheLoopTakesNothingOfWhatComesToItsProcess(): void
    {
        self::assertSame(
            [
                'exited' => 7,
                'running' => '{"pg_sleep":"","a":8}',
                'shared' => '{"pg_sleep":"","a":9}',
                'heard' => '"by the fork"',
                ...self::AS_BEFORE,
            ],
            Host::call(ForkPrograms::class . '::turnTheLoop', [Cluster::shared()->dsn()]),
        );
    }

    public function testALoopOverListenSharedInAForkHasAConnectionOfItsOwn(): void
    {
        self::assertSame(
            ['exited' => 7, 'first' => '"first"', 'last' => '"last"', ...self::AS_BEFORE],
            Host::call(ForkPrograms::class . '::shareListener', [Cluster::shared()->dsn()]),
        );
    }

    public function testAForkThatCancelsOrLeavesALoopCancelsNothingOfItsProcess(): void
    {
        self::assertSame(
            ['exited' => 7, 'running' => '{"pg_sleep":"","a":8}', 'copy' => 5000, ...self::AS_BEFORE],
            Host::call(ForkPrograms::class . '::cancel', [Cluster::shared()->dsn()]),
        );
    }

    public function testAForkThatEndsConnectionsStopsNoStatementOfItsProcess(): void
    {
        self::assertSame(
            array_fill(0, 6, '{"pg_sleep":"","a":8}'),
            Host::call(ForkPrograms::class . '::endDuringStatements', [Cluster::shared()->dsn()]),
        );
    }

    public function testAForkThatKillsAPoolLeavesTheConnectionThatItsProcessIsOpening(): void
    {
        self::assertSame(
            array_fill(0, 6, '{"a":8}'),
            Host::call(ForkPrograms::class . '::killWhileConnecting', [Cluster::shared()->dsn()]),
        );
    }

    public function testAForkThatTurnsTheLoopRunsNoCallThatWaitsForALookUp(): void
    {
        $calls = ['statement', 'with a cancellation', 'transaction', 'second transaction', 'connection'];
        $sorted = $calls;
        sort($sorted);

        self::assertSame(
            [
                'fork' => [...array_fill_keys([...$calls, 'listen'], 'refused'), 'own' => 5],
                'process' => array_combine($calls, $calls),
                'heard' => 'heard',
                'rows' => $sorted,
            ],
            Host::call(ForkPrograms::class . '::lookUp', [self::dsn(true), $this->path('told')]),
        );
    }

    public function testAForkThatTurnsTheLoopTriesNoHostForACallOfItsProcess(): void
    {
        self::assertSame(
            ['fork' => 'refused', 'process' => 'statement', 'rows' => ['statement']],
            Host::call(ForkPrograms::class . '::tryTheNextHost', [self::dsn(true), $this->path('told')]),
        );
    }

    public function testAForkThatTurnsTheLoopStartsNoTransactionThatWaitsForAnother(): void
    {
        self::assertSame(
            array_fill(0, 2, ['refused', 'x']),
            Host::call(
                ForkPrograms::class . '::waitForATransaction',
                [Cluster::shared()->dsn(), $this->path('told')],
            ),
        );
    }

    #[RequiresPhpExtension('FFI')]
    #[RequiresPhpExtension('openssl')]
    public function testAForkLeavesTheTlsConnectionsOfItsProcessAlone(): void
    {
        [$certificate, $key] = (new Certificates($this->path()))->forServer('127.0.0.1');
        $cluster = Cluster::start([], new TemporaryPostgresOptions(certificate: $certificate, key: $key));
        try {
            $dsn = $cluster->tcpDsn(sslmode: 'require');
            $call = static fn(string $program, mixed ...$arguments): mixed
                => Host::call(ForkPrograms::class . "::{$program}", [$dsn, ...array_values($arguments)]);
            $outcomes = [
                'exit' => $call('exit'),
                'letGo' => $call('letGo'),
                'refuse' => array_diff_key((array) $call('refuse', $this->path('told')), ['told' => 0]),
                'refuseAfterIdleness' => $call('refuseAfterIdleness', $this->path('told'), 0.0),
                'turnTheLoop' => $call('turnTheLoop'),
                'cancel' => $call('cancel'),
                'endDuringStatements' => $call('endDuringStatements'),
                'persistent' => $call('exitWithPersistentConnections'),
                'handover' => $call('exitAfterAHandover'),
                'fatal' => $call('failFatally'),
            ];
        } finally {
            $cluster->stop();
        }

        $told = array_fill(0, 3, \LogicException::class);
        $slept = '{"pg_sleep":"","a":8}';
        $heard = ['running' => $slept, 'shared' => '{"pg_sleep":"","a":9}', 'heard' => '"by the fork"'];
        self::assertSame(
            [
                'exit' => ['exited' => 7, 'stream' => 1000, 'copy' => 2000, 'borrowed' => 5, ...self::AS_BEFORE],
                'letGo' => ['exited' => 7, 'stream' => 1000, 'borrowed' => 5, ...self::AS_BEFORE],
                'refuse' => ['transaction' => [7, 6], 'stream' => 1000, 'borrowed' => 5, ...self::AS_BEFORE],
                'refuseAfterIdleness' => ['told' => $told, ...self::AS_BEFORE],
                'turnTheLoop' => ['exited' => 7, ...$heard, ...self::AS_BEFORE],
                'cancel' => ['exited' => 7, 'running' => $slept, 'copy' => 5000, ...self::AS_BEFORE],
                'endDuringStatements' => array_fill(0, 6, $slept),
                'persistent' => ['exited' => 7, ...self::AS_BEFORE],
                'handover' => [7, true],
                'fatal' => ['exited' => 255, ...self::AS_BEFORE],
            ],
            $outcomes,
        );
    }

    private static function dsn(bool $tcp): string
    {
        return $tcp ? Cluster::shared()->tcpDsn(sslmode: 'disable') : Cluster::shared()->dsn();
    }
}
