<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\Future;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\Notification;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\QueryException;
use Spindle\Postgres\Reconnected;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PoolContract;
use Spindle\Tests\Eventually;

use function Amp\Future\await;

/**
 * Tests that loops over listenShared() use one connection and do not disturb each other.
 *
 * @phpstan-require-extends PoolContract
 */
trait SharesAListener
{
    public function testManyLoopsShareOneConnection(): void
    {
        $pool = $this->pool(1);
        $received = [];
        $channels = ['a', ['a', 'b', 'b'], ['42', 'it\'s "ä"'], 'a'];
        $loops = [];
        foreach ($channels as $number => $some) {
            $received[$number] = [];
            $loops[] = self::reading($pool, $some, $received[$number]);
        }
        $this->awaitShared($pool, $received);
        Observer::ask("SELECT pg_notify('b', '1'), pg_notify('a', '2'), pg_notify('42', '3'), pg_notify('b', 'last')");
        Observer::ask("SELECT pg_notify('it''s \"ä\"', 'last'), pg_notify('a', 'last')");
        await($loops);

        self::assertSame([['2', 'last'], ['1', '2', 'last'], ['3', 'last'], ['2', 'last']], $received);
        Eventually::holds(fn(): bool => $this->backends() === [], 'the connection is closed after the last loop');
        $again = [];
        $loop = self::reading($pool, 'c', $again);
        $this->awaitShared($pool, [&$again]);
        Observer::ask('NOTIFY c, ' . "'last'");
        $loop->await();
        self::assertSame(['last'], $again);
    }

    public function testALoopThatJoinsOrEndsChangesTheChannelsOfTheConnection(): void
    {
        $pool = $this->pool(1);
        [$stays, $joins] = [[], []];
        $first = self::reading($pool, 'stays', $stays);
        $pid = $this->awaitStatement('LISTEN "stays"');
        $leaving = new DeferredCancellation();
        $second = self::reading($pool, ['stays', 'joins'], $joins, $leaving);
        self::assertSame($pid, $this->awaitStatement('LISTEN "joins"'));
        Observer::ask("SELECT pg_notify('joins', '1'), pg_notify('stays', '2')");
        Eventually::holds(static function () use (&$joins): bool {
            return $joins === ['1', '2'];
        }, 'both arrive');
        $leaving->cancel();
        self::thrown(CancelledException::class, $second->await(...));
        self::assertSame($pid, $this->awaitStatement('UNLISTEN "joins"'));
        Observer::ask("NOTIFY stays, 'last'");
        $first->await();

        self::assertSame(['2', 'last'], $stays);
    }

    public function testEachLoopGetsAReconnectedAndContinues(): void
    {
        $pool = $this->pool(1);
        $received = [[], []];
        $loops = [
            self::reading($pool, 'a', $received[0]),
            self::reading($pool, ['a', 'b'], $received[1]),
        ];
        $this->awaitShared($pool, $received);
        self::terminate(array_keys($this->backends())[0]);
        $gap = Reconnected::class;
        Eventually::holds(static function () use (&$received, $gap): bool {
            return $received === [[$gap], [$gap]];
        }, 'both loops know of the gap');
        Observer::ask("SELECT pg_notify('a', '1'), pg_notify('b', 'last'), pg_notify('a', 'last')");
        await($loops);

        self::assertSame([[$gap, '1', 'last'], [$gap, '1', 'last']], $received);
    }

    public function testALoopThatIsTooSlowIsToldSoAndDisturbsNoOther(): void
    {
        $pool = $this->pool(1);
        $slow = $pool->listenShared('flood');
        $first = Async::run(static fn(): mixed => $slow->current());
        $fast = [];
        $loop = self::reading($pool, 'flood', $fast);
        $this->awaitShared($pool, [&$fast]);
        $before = new \DateTimeImmutable();
        Observer::ask("NOTIFY flood, '0'");
        self::assertEquals('0', self::payload($first->await()));
        $beforeFlood = new \DateTimeImmutable();
        Observer::ask("SELECT pg_notify('flood', i::text) FROM generate_series(1, 3000) AS i");
        Observer::ask("NOTIFY flood, 'last'");
        $loop->await();
        self::assertSame([...array_map(strval(...), range(0, 3_000)), 'last'], $fast);
        $payloads = [];
        $slow->next();
        $event = $slow->current();
        while ($event instanceof Notification) {
            $payloads[] = $event->payload;
            $slow->next();
            $event = $slow->current();
        }
        self::assertInstanceOf(NotificationsDropped::class, $event);
        self::assertSame(3_001, \count($payloads) + $event->count);
        self::assertSame(array_map(strval(...), range(1, \count($payloads))), $payloads);
        self::assertGreaterThanOrEqual($before, $event->since);
        self::assertLessThanOrEqual($beforeFlood, $event->since, 'the flood arrived while the event loop was blocked');
        $next = Async::run(static function () use ($slow): mixed {
            $slow->next();

            return $slow->current();
        });
        Observer::ask("NOTIFY flood, 'after'");

        self::assertSame('after', self::payload($next->await()));
    }

    public function testAChannelThatTheServerRefusesFailsOnlyItsOwnLoops(): void
    {
        $pool = $this->pool(1);
        $received = $refused = [];
        $loops = [self::reading($pool, ['a', 'b'], $received)];
        $loops[] = self::reading($pool, ['a', "\xFF"], $refused);
        self::thrown(QueryException::class, $loops[1]->await(...));
        $loops[1] = self::reading($pool, "\xFE", $refused);
        self::thrown(QueryException::class, $loops[1]->await(...));
        self::thrown(\LogicException::class, static fn(): mixed => $pool->listenShared("a\0")->current());
        Observer::ask("NOTIFY b, 'last'");
        $loops[0]->await();

        self::assertSame([['last'], []], [$received, $refused]);
    }

    public function testAllLoopsFailIfTheFirstConnectionCanNotBeOpened(): void
    {
        $pool = new PostgresPool(PostgresOptions::fromDsn('host=/nonexistent'));
        $received = [];
        foreach ([self::reading($pool, 'a', $received), self::reading($pool, 'b', $received)] as $loop) {
            self::thrown(ConnectionFailedException::class, $loop->await(...));
        }
    }

    public function testClosingEndsSharedLoopsAfterTheNotificationsThatHaveArrived(): void
    {
        $pool = $this->pool(1);
        $unread = $pool->listenShared('a');
        $reading = Async::run(static fn(): mixed => $unread->current());
        $waiting = [];
        $loop = self::reading($pool, 'a', $waiting);
        $this->awaitShared($pool, [&$waiting]);
        $late = $pool->listenShared('a');
        Observer::ask("SELECT pg_notify('a', i::text) FROM generate_series(1, 3) AS i");
        $received = [self::payload($reading->await())];
        self::meanwhile();
        $pool->close();
        $loop->await();
        for ($unread->next(); $unread->valid(); $unread->next()) {
            $received[] = self::payload($unread->current());
        }

        self::assertSame([['1', '2', '3'], ['1', '2', '3'], []], [$received, $waiting, iterator_to_array($late)]);
        self::thrown(ConnectionClosedException::class, static fn() => $pool->listenShared('a'));
    }

    public function testKillingFailsSharedLoops(): void
    {
        $pool = $this->pool(1);
        $received = [[], []];
        $loops = [self::reading($pool, 'a', $received[0]), self::reading($pool, 'b', $received[1])];
        $this->awaitShared($pool, $received);
        $pool->kill();
        foreach ($loops as $loop) {
            self::thrown(ConnectionClosedException::class, $loop->await(...));
        }
    }

    public function testTheTracesOfManyKilledSharedLoopsAreShort(): void
    {
        $pool = $this->pool(1);
        $received = [[]];
        $loops = array_map(static fn(): Future => self::reading($pool, 'a', $received[0]), range(1, 300));
        $this->awaitShared($pool, $received);
        $pool->kill();
        $lengths = array_map(
            static fn(Future $loop): int
                => \count(self::thrown(ConnectionClosedException::class, $loop->await(...))->getTrace()),
            $loops,
        );

        self::assertLessThan(400, max($lengths));
    }

    public function testSharedLoopsOutliveTheirPool(): void
    {
        $received = [];
        $loop = self::reading($this->pool(1), 'a', $received);
        $this->awaitStatement('LISTEN "a"');
        gc_collect_cycles();
        Observer::ask("NOTIFY a, 'last'");
        $loop->await();

        self::assertSame(['last'], $received);
    }

    /**
     * Reads until a notification with the payload "last" arrives.
     *
     * @param string|list<string> $channels
     * @param list<string> $received payloads, and classes of other events
     *
     * @param-out list<string> $received
     *
     * @return Future<null>
     */
    private static function reading(
        PostgresPool $pool,
        string|array $channels,
        array &$received,
        ?DeferredCancellation $cancellation = null,
    ): Future {
        $events = $pool->listenShared($channels, $cancellation?->getCancellation());

        return Async::run(static function () use ($events, &$received): null {
            foreach ($events as $event) {
                $received[] = self::payload($event);
                if (self::payload($event) === 'last') {
                    break;
                }
            }

            return null;
        });
    }

    private static function payload(mixed $event): string
    {
        return $event instanceof Notification ? $event->payload : get_debug_type($event);
    }

    /**
     * Waits until the loops receive notifications, by a channel that each session of {@see reading()} listens to.
     *
     * @param array<array-key, list<string>> $received
     */
    private function awaitShared(PostgresPool $pool, array $received): void
    {
        $probe = 'probe_' . bin2hex(random_bytes(6));
        $ignored = [];
        $loop = self::reading($pool, $probe, $ignored);
        Eventually::holds(static function () use ($probe, $loop): bool {
            Observer::ask("NOTIFY {$probe}, 'last'");

            return $loop->isComplete();
        }, 'the shared connection listens');
        self::assertCount(1, $this->backends(), 'one connection for ' . \count($received) . ' loops');
    }

    /** Waits until the last statement of a connection contains a text, and returns its process id. */
    private function awaitStatement(string $part): int
    {
        $pid = 0;
        Eventually::holds(function () use ($part, &$pid): bool {
            foreach (array_keys($this->backends()) as $candidate) {
                $sql = "SELECT query FROM pg_stat_activity WHERE pid = {$candidate} AND state = 'idle'";
                $pid = str_contains(Observer::ask($sql)[0]['query'] ?? '', $part) ? $candidate : $pid;
            }

            return $pid !== 0;
        }, "{$part} is executed");

        return $pid;
    }
}
