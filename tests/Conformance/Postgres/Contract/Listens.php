<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use PHPUnit\Framework\Attributes\TestWith;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Notification;
use Spindle\Postgres\Reconnected;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Observer;
use Spindle\Tests\Conformance\Postgres\PostgresContract;
use Spindle\Tests\Eventually;

/**
 * Tests LISTEN and NOTIFY.
 *
 * @phpstan-require-extends PostgresContract
 */
trait Listens
{
    use ReceivesNotifications;

    public function testANameThatIsNoChannelsIsRefused(): void
    {
        foreach (['', str_repeat('x', 64)] as $channel) {
            self::thrown(\ValueError::class, fn(): mixed => $this->listener()->listen($channel)->current());
        }
    }

    public function testSeveralChannelsOfAnyNameAreListenedTo(): void
    {
        $channels = ['plain', 'Upper', 'with space', 'a"quote"', "it's", 'ä;--', str_repeat('x', 63)];
        $link = $this->listener();
        $future = Async::run(static fn(): array => self::take(\count($channels), $link->listen($channels)));
        $this->awaitListener(str_repeat('x', 63));
        foreach ($channels as $channel) {
            $link->query('SELECT pg_notify($1, $2)', [$channel, "to {$channel}"]);
        }
        $received = $future->await();

        self::assertSame($channels, array_column($received, 'channel'));
        self::assertSame(
            array_map(static fn(string $channel): string => "to {$channel}", $channels),
            array_column($received, 'payload'),
        );
    }

    public function testConnectionsThatTheServerEndsSoonAreReplacedAfterGrowingPauses(): void
    {
        $connection = $this->connect(settings: ['idle_session_timeout' => '50']);
        $startedAt = microtime(true);
        self::assertCount(6, self::take(6, $connection->listen('channel')));

        self::assertGreaterThan(0.9, microtime(true) - $startedAt);
    }

    public function testAFloodArrivesAsAWholeWhileItsReaderIsSlow(): void
    {
        $link = $this->listener();
        $payload = str_repeat('x', 1_000);
        $future = Async::run(static function () use ($link): array {
            $numbers = [];
            foreach ($link->listen('flood') as $received) {
                $numbers[] = $received instanceof Notification ? (int) $received->payload : -1;
                if (\count($numbers) % 500 === 0) {
                    \Amp\delay(0.001);
                }
                if (\count($numbers) === 5_000) {
                    return $numbers;
                }
            }

            return [];
        });
        $this->awaitListener('flood');
        foreach ([0, 1, 2, 3, 4] as $thousand) {
            Observer::ask(
                "SELECT pg_notify('flood', (1000 * {$thousand} + i)::text || '{$payload}') "
                    . 'FROM generate_series(0, 999) AS i',
            );
        }

        self::assertSame(range(0, 4_999), $future->await());
    }

    public function testALoopThatIsNotBegunHasNoConnection(): void
    {
        $link = $this->listener();
        self::assertUsable($link);
        $before = $this->backends();
        $loop = $link->listen('news');
        self::meanwhile();

        self::assertSame(array_keys($before), array_keys($this->backends()));
        unset($loop);
    }

    public function testAConnectionThatIsLostIsReplacedAndTheGapShown(): void
    {
        $link = $this->listener();
        $received = [];
        $future = Async::run(static function () use ($link, &$received): void {
            foreach ($link->listen('news') as $one) {
                $received[] = $one;
                if ($one instanceof Notification && $one->payload === 'last') {
                    return;
                }
            }
        });
        foreach ([0, 1] as $round) {
            $pid = $this->awaitListener('news');
            $complete = new \DateTimeImmutable();
            Observer::ask("NOTIFY news, 'first'");
            Eventually::holds(static function () use (&$received, $round): bool {
                return \count($received) === 3 * $round + 1;
            }, 'a notification arrives before the loss');
            $before = new \DateTimeImmutable();
            self::terminate($pid);
            Eventually::holds(static function () use (&$received, $round): bool {
                return \count($received) === 3 * $round + 2;
            }, 'the gap is shown');
            $gap = $received[3 * $round + 1];
            self::assertInstanceOf(Reconnected::class, $gap);
            self::assertInstanceOf(ConnectionLostException::class, $gap->reason);
            self::assertSame('57P01', $gap->reason->sqlState);
            self::assertGreaterThanOrEqual($complete, $gap->since);
            self::assertLessThanOrEqual($before, $gap->since);
            // When the gap is reported, the connection listens again.
            Observer::ask('NOTIFY news, ' . ($round === 0 ? "'more'" : "'last'"));
            Eventually::holds(static function () use (&$received, $round): bool {
                return \count($received) === 3 * $round + 3;
            }, 'what is told then arrives');
        }
        $future->await();

        self::assertSame(
            ['first', 'gap', 'more', 'first', 'gap', 'last'],
            array_map(static fn(mixed $one): string => $one instanceof Notification ? $one->payload : 'gap', $received),
        );
    }

    public function testNotificationsThatArrivedBeforeALossAreReturnedBeforeTheGap(): void
    {
        $loop = $this->listener()->listen('news');
        $first = Async::run(static fn(): mixed => $loop->current());
        $pid = $this->awaitListener('news');
        Observer::ask("NOTIFY news, 'first'");
        $received = [$first->await()];
        Observer::ask("NOTIFY news, 'second'");
        self::meanwhile();
        self::terminate($pid);
        self::meanwhile();
        foreach ([1, 2] as $_) {
            $loop->next();
            $received[] = $loop->current();
        }

        self::assertSame(
            ['first', 'second', 'gap'],
            array_map(static fn(mixed $one): string => $one instanceof Notification ? $one->payload : 'gap', $received),
        );
    }

    #[TestWith([false])]
    #[TestWith([true])]
    public function testAGapBeginsBeforeABlockOfTheEventLoopInWhichTheConnectionIsLost(bool $isNotified): void
    {
        $loop = $this->listener()->listen('news');
        $reading = Async::run(static fn(): mixed => $loop->current());
        $pid = $this->awaitListener('news');
        $complete = new \DateTimeImmutable();
        Observer::ask("NOTIFY news, 'first'");
        $reading->await();
        $before = new \DateTimeImmutable();
        if ($isNotified) {
            Observer::ask("NOTIFY news, 'second'");
        }
        self::terminate($pid);
        Observer::ask("NOTIFY news, 'lost'");
        do {
            $loop->next();
        } while ($loop->current() instanceof Notification);
        $gap = $loop->current();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertGreaterThanOrEqual($complete, $gap->since);
        self::assertLessThanOrEqual($before, $gap->since);
    }

    public function testAGapAfterALongSilenceBeginsSoonBeforeTheLastBytes(): void
    {
        $loop = $this->listener()->listen('news');
        $reading = Async::run(static fn(): mixed => $loop->current());
        $pid = $this->awaitListener('news');
        $silence = new \DateTimeImmutable();
        $isLong = static fn(): bool => microtime(true) - (float) $silence->format('U.u') > 1.5;
        Eventually::holds($isLong, 'the silence is longer than the interval of reads');
        self::terminate($pid);
        $gap = $reading->await();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertGreaterThan($silence, $gap->since);
    }

    /** @param bool $isReadBefore whether the loop has read all notifications before the connection is lost */
    #[TestWith([false])]
    #[TestWith([true])]
    public function testAGapBeginsBeforeAPauseOfTheLoopInWhichTheConnectionIsLost(bool $isReadBefore): void
    {
        $loop = $this->listener()->listen('news');
        $reading = Async::run(static fn(): mixed => $loop->current());
        $pid = $this->awaitListener('news');
        Observer::ask("NOTIFY news, 'first'");
        $reading->await();
        Observer::ask("SELECT pg_notify('news', i::text) FROM generate_series(1, 1500) AS i");
        self::meanwhile();
        $now = Observer::ask('SELECT clock_timestamp() AS now')[0]['now'];
        $isPinged = "SELECT FROM pg_stat_activity WHERE pid = {$pid} AND state_change > '{$now}'";
        if ($isReadBefore) {
            for ($i = 1; $i <= 1_500; ++$i) {
                $loop->next();
            }
            Eventually::holds(static fn(): bool => \count(Observer::ask($isPinged)) === 1, 'the server has answered');
            self::meanwhile();
        }
        $complete = new \DateTimeImmutable();
        if ($isReadBefore) {
            Observer::ask("NOTIFY news, 'last'");
            $loop->next();
        }
        $before = new \DateTimeImmutable();
        self::terminate($pid);
        self::meanwhile();
        while ($loop->current() instanceof Notification) {
            $loop->next();
        }
        $gap = $loop->current();

        self::assertInstanceOf(Reconnected::class, $gap);
        self::assertSame($isReadBefore, $gap->since > $complete);
        self::assertLessThanOrEqual($before, $gap->since);
    }

    public function testTwoLoopsHearTheSame(): void
    {
        $link = $this->listener();
        // One after the other, because both listen to "a" at first.
        $futures = [Async::run(static fn(): array => self::take(2, $link->listen('a')))];
        $this->awaitListener('a');
        $futures[] = Async::run(static fn(): array => self::take(3, $link->listen(['a', 'b'])));
        $this->awaitListener('b');
        Observer::ask("SELECT pg_notify('a', '1'), pg_notify('b', '2'), pg_notify('a', '3')");

        self::assertSame(
            [['1', '3'], ['1', '2', '3']],
            array_map(static fn(\Amp\Future $future): array => array_column($future->await(), 'payload'), $futures),
        );
    }

    public function testALoopInMainKeepsTheEventLoopRunning(): void
    {
        $link = $this->listener();
        EventLoop::queue(function (): void {
            $this->awaitListener('main');
            Observer::ask("NOTIFY main, 'x'");
        });
        $received = self::take(1, $link->listen('main'));

        self::assertSame(['x'], array_column($received, 'payload'));
    }

    public function testALoopIsCancelledWhateverItDoes(): void
    {
        $link = $this->listener();
        self::assertUsable($link);
        $before = \count($this->backends());
        $cancelled = new DeferredCancellation();
        $cancelled->cancel(new \DomainException('enough'));
        $thrown = self::thrown(
            CancelledException::class,
            static fn() => self::take(1, $link->listen('news', $cancelled->getCancellation())),
        );
        self::assertSame('enough', $thrown->getPrevious()?->getMessage());

        foreach (['while it waits' => false, 'after something was told' => true] as $when => $received) {
            $source = new DeferredCancellation();
            $future = Async::run(
                static fn(): array => self::take(2, $link->listen('news', $source->getCancellation())),
            );
            $this->awaitListener('news');
            if ($received) {
                Observer::ask("NOTIFY news, 'x'");
                self::meanwhile();
            }
            $source->cancel(new \DomainException($when));
            self::assertSame(
                $when,
                self::thrown(CancelledException::class, $future->await(...))->getPrevious()?->getMessage(),
            );
            Eventually::holds(fn(): bool => \count($this->backends()) === $before, 'its connection is closed');
        }
    }

    public function testChannelsHaveToBeNamed(): void
    {
        $link = $this->listener();
        self::thrown(\ValueError::class, static fn() => iterator_to_array($link->listen([])));
        self::thrown(\LogicException::class, static fn() => iterator_to_array($link->listen("a\0b")));
        self::assertUsable($link);
    }
}
