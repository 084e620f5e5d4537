<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Notification;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Reconnected;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PostgresContract;
use Spindle\Tests\Eventually;

/**
 * Tests the basics of LISTEN and NOTIFY. Every listener uses its own connection.
 *
 * @phpstan-require-extends PostgresContract
 */
trait ReceivesNotifications
{
    abstract protected function listener(): PostgresConnection|PostgresPool;

    public function testNotificationsArriveInOrder(): void
    {
        $link = $this->listener();
        $future = Async::run(static fn(): array => self::take(3, $link->listen('news')));
        $pid = $this->awaitListener('news');
        $link->query("SELECT pg_notify('news', \$1), pg_notify('news', \$2)", ['first', "ä'\"\n"]);
        Observer::ask("SELECT pg_notify('news', ''), pg_notify('other', 'x')");
        $received = $future->await();

        self::assertContainsOnlyInstancesOf(Notification::class, $received);
        self::assertSame(['first', "ä'\"\n", ''], array_column($received, 'payload'));
        self::assertSame(['news', 'news', 'news'], array_column($received, 'channel'));
        self::assertNotContains($pid, array_column($received, 'pid'), 'the process of the sender');
        self::assertGreaterThan(0, min([1, ...array_column($received, 'pid')]));
    }

    public function testLeavingTheLoopClosesItsConnection(): void
    {
        $link = $this->listener();
        self::assertUsable($link);
        $before = $this->backends();
        $future = Async::run(static fn(): array => self::take(1, $link->listen('news')));
        $this->awaitListener('news');
        self::assertCount(\count($before) + 1, $this->backends());
        Observer::ask("NOTIFY news, 'x'");
        $future->await();

        Eventually::holds(fn(): bool => \count($this->backends()) === \count($before), 'its connection is closed');
        self::assertUsable($link);
    }

    public function testClosingEndsALoopOverNotificationsAfterThoseThatHaveArrived(): void
    {
        $link = $this->listener();
        $notifications = $link->listen('news');
        $reading = Async::run(static fn(): mixed => $notifications->current());
        $this->awaitListener('news');
        $link->query("SELECT pg_notify('news', i::text) FROM generate_series(1, 3) AS i");
        self::assertInstanceOf(Notification::class, $reading->await());
        self::meanwhile();
        $link->close();
        $isClosed = fn(): bool => $this->backends() === [];
        Eventually::holds($isClosed, 'also the connection of a generator that is not being read is closed');
        $payloads = [];
        foreach ($notifications as $notification) {
            $payloads[] = $notification instanceof Notification ? $notification->payload : 'gap';
        }

        self::assertSame(['1', '2', '3'], $payloads);
        self::thrown(ConnectionClosedException::class, static fn() => $link->listen('news'));
    }

    public function testClosingEndsALoopThatWaitsForNotifications(): void
    {
        $link = $this->listener();
        $late = $link->listen('news');
        $all = Async::run(static fn(): array => iterator_to_array($link->listen('news')));
        $this->awaitListener('news');
        $link->close();

        self::assertSame([], $all->await());
        self::assertSame([], iterator_to_array($late), 'the loop begins after close()');
    }

    public function testKillingFailsALoopOverNotifications(): void
    {
        $link = $this->listener();
        $all = Async::run(static fn(): array => iterator_to_array($link->listen('news')));
        $this->awaitListener('news');
        $link->kill();

        self::thrown(ConnectionClosedException::class, $all->await(...));
    }

    /** Runs the event loop until a connection listens whose last channel is this one, and returns its process id. */
    protected function awaitListener(string $channel): int
    {
        $pid = 0;
        Eventually::holds(function () use ($channel, &$pid): bool {
            foreach ($this->backends() as $candidate => $state) {
                $query = Observer::ask("SELECT query FROM pg_stat_activity WHERE pid = {$candidate}")[0]['query'] ?? '';
                if ($state === 'idle' && str_contains($query, 'LISTEN') && str_contains($query, $channel)) {
                    $pid = $candidate;
                }
            }

            return $pid !== 0;
        }, "somebody listens to {$channel}");

        return $pid;
    }

    /**
     * @param \Generator<int, Notification|Reconnected> $loop
     *
     * @return list<Notification|Reconnected>
     */
    private static function take(int $number, \Generator $loop): array
    {
        $received = [];
        foreach ($loop as $one) {
            $received[] = $one;
            if (\count($received) === $number) {
                break;
            }
        }

        return $received;
    }
}
