<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Postgres;

use Revolt\EventLoop;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresPool;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\ReplacedLoop;
use Spindle\Tests\TidyTestCase;

use function Amp\async;

/** A {@see PostgresPool} can be used after EventLoop::setDriver() has replaced the event loop. */
final class ReplacedLoopTest extends TidyTestCase
{
    use UsesCluster;

    private const LOST = 'EventLoop::setDriver() has replaced the event loop in which it was opened';

    public function testAPoolUsesNewConnectionsInANewEventLoop(): void
    {
        $results = Host::call(self::class . '::replaceLoop', [Cluster::shared()->dsn()]);

        self::assertSame(
            [
                'rows' => [1, 2, 3, 4],
                'lent' => 'Nothing was sent: The connection to PostgreSQL was lost: ' . self::LOST,
                'connection' => 'Nothing was sent: The connection to PostgreSQL was lost: ' . self::LOST,
                'notification' => 'shared',
                'closed' => true,
                'timers' => 30,
            ],
            $results,
        );
    }

    public function testCallsOfTheEarlierEventLoopKeepNoConnections(): void
    {
        self::assertSame(
            ['answered', 'The connection to PostgreSQL was lost: ' . self::LOST],
            Host::call(self::class . '::stopLoop', [Cluster::shared()->dsn()], timeout: 20),
        );
    }

    public function testACallThatWaitsForAConnectionCancelsNoCallbacksOfTheNewEventLoop(): void
    {
        self::assertSame(200, Host::call(self::class . '::replaceLoopWhileOpening', timeout: 20));
    }

    /** @return array<string, mixed> */
    public static function replaceLoop(string $dsn): array
    {
        $pool = new PostgresPool($dsn, 3);
        $connection = PostgresConnection::connect($dsn);
        $rows = [$connection->query('SELECT 1')->value()];
        $rows[] = $pool->transaction(static fn($transaction) => $transaction->query('SELECT 2')->value());
        $lent = $pool->acquire();
        async(static fn() => iterator_to_array($pool->listenShared('early')))->ignore();
        $loop = ReplacedLoop::startAfterATurn();
        for ($i = 0; $i < 5; ++$i) {
            $rows[2] = $pool->query('SELECT 3')->value();
        }
        $rows[] = $pool->transaction(static fn($transaction) => $transaction->query('SELECT 4')->value());
        $results = ['rows' => $rows];
        foreach (['lent' => $lent, 'connection' => $connection] as $name => $link) {
            try {
                $link->query('SELECT 5');
            } catch (PostgresException $failure) {
                $results[$name] = $failure->getMessage();
            }
        }
        unset($lent, $connection, $link);
        gc_collect_cycles();
        $notify = EventLoop::repeat(0.01, static function () use ($pool): void {
            $pool->execute("SELECT pg_notify('late', 'shared')");
        });
        foreach ($pool->listenShared('late') as $notification) {
            $results['notification'] = $notification instanceof Notification ? $notification->payload : '';
            break;
        }
        EventLoop::cancel($notify);
        $pool->close();
        $results['closed'] = $pool->isClosed();

        return [...$results, 'timers' => $loop->remainingTimers()];
    }

    /** @return int number of callbacks that remain in the second loop */
    public static function replaceLoopWhileOpening(): int
    {
        $silent = stream_socket_server('tcp://127.0.0.1:0');
        \assert($silent !== false);
        [, $port] = explode(':', (string) stream_socket_get_name($silent, false));
        $pool = new PostgresPool("host=127.0.0.1 user=u port={$port}");
        $call = async(static fn() => $pool->query('SELECT 1'));
        EventLoop::repeat(0.01, static function () use ($pool): void {
            $pool->statistics()['opening'] === 1 ? EventLoop::getDriver()->stop() : null;
        });
        EventLoop::run();
        $loop = ReplacedLoop::start(200);
        $pool->kill();
        $call->ignore();
        unset($pool, $call);
        EventLoop::run();
        gc_collect_cycles();

        return $loop->remainingTimers();
    }

    /** @return list<string> the answer in the second loop, and the outcome of a call of the first loop */
    public static function stopLoop(string $dsn): array
    {
        $pool = new PostgresPool($dsn, 1);
        $outcome = '';
        foreach ([1, 2] as $_) {
            async(static function () use ($pool, &$outcome): void {
                try {
                    $pool->execute('SELECT pg_sleep(60)');
                } catch (PostgresException $failure) {
                    $outcome = $failure->getMessage();
                }
            });
        }
        EventLoop::repeat(0.01, static function () use ($pool): void {
            if ($pool->statistics()['in_use'] === 1 && $pool->statistics()['waiting'] === 1) {
                EventLoop::getDriver()->stop();
            }
        });
        EventLoop::run();
        ReplacedLoop::start(0);
        $answer = $pool->query("SELECT 'answered'")->value();
        $pool->close();

        return [\is_string($answer) ? $answer : '', $outcome];
    }
}
