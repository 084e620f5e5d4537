<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\DeferredFuture;
use Spindle\Postgres\Notification;
use Spindle\Postgres\NotificationsDropped;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Reconnected;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\FakeConnection;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\TidyTestCase;

/** While a machine is suspended, its clock continues, but hrtime() stops. */
final class SuspendedMachineTest extends TidyTestCase
{
    private const SECONDS = 3600;

    /** Seconds for which the machine was suspended. Added to the clock in the namespace of the code under test. */
    public static int $suspended = 0;

    /** Number of times that the code under test has read the clock. */
    public static int $reads = 0;

    public function testNotificationsWhileTheMachineWasSuspendedCountAsMissed(): void
    {
        $tooLate = Host::call(self::class . '::suspendListener', timeout: 30);

        self::assertIsFloat($tooLate);
        self::assertLessThan(self::SECONDS / 2, $tooLate);
    }

    public function testNotificationsDroppedAfterASuspensionHaveATimeBeforeIt(): void
    {
        $tooLate = Host::call(self::class . '::suspendSlowLoop', timeout: 30);

        self::assertIsFloat($tooLate);
        self::assertLessThan(self::SECONDS / 2, $tooLate);
    }

    public function testNotificationsCountAsMissedSinceAPauseThatBeganBeforeTheSuspension(): void
    {
        $tooLate = Host::call(self::class . '::suspendPausedListener', timeout: 30);

        self::assertIsFloat($tooLate);
        self::assertLessThan(self::SECONDS / 2, $tooLate);
    }

    /** @return float seconds from the suspension, or shortly before, to {@see NotificationsDropped::$since} */
    public static function suspendSlowLoop(): float
    {
        self::defineClock();
        /** @var DeferredFuture<null> $end */
        $end = new DeferredFuture();
        $server = Answers::server(static function (FakeConnection $client) use ($end): void {
            $session = new FakeSession($client);
            $session->next();
            $session->complete('LISTEN');
            $end->getFuture()->await();
            self::$suspended = self::SECONDS;
            $notifications = str_repeat(Message::notification(1, 'news', 'x'), 3_000);
            $client->write($notifications, Message::notification(1, 'news', 'last'));
            $session->next();
        });
        $pool = new PostgresPool($server->dsn());
        [$slow, $fast] = [$pool->listenShared('news'), $pool->listenShared('news')];
        $first = Async::run(static fn(): mixed => $slow->current());
        $last = Async::run(static function () use ($fast): void {
            foreach ($fast as $event) {
                if ($event instanceof Notification && $event->payload === 'last') {
                    return;
                }
            }
        });
        Eventually::holds(static fn(): bool => self::$reads > 2, 'the client reads the clock');
        $suspendedAt = microtime(true);
        $end->complete();
        $first->await();
        $last->await();
        do {
            $slow->next();
            $event = $slow->current();
        } while ($event instanceof Notification);
        \assert($event instanceof NotificationsDropped);

        return (float) $event->since->format('U.u') - $suspendedAt;
    }

    /** @return float seconds from the suspension, or shortly before, to {@see Reconnected::$since} */
    public static function suspendPausedListener(): float
    {
        self::defineClock();
        $end = new DeferredFuture();
        $server = Answers::server(
            static fn(FakeConnection $client) => $client->stall(),
            static function (FakeConnection $client) use ($end): void {
                $session = new FakeSession($client);
                $session->next();
                $session->complete('LISTEN');
                $client->write(str_repeat(Message::notification(1, 'news', 'x'), 20_000));
                $end->getFuture()->await();
            },
            static function (FakeConnection $client): void {
                $session = new FakeSession($client);
                $session->next();
                $session->complete('LISTEN');
                $session->next();
            },
        );
        $loop = PostgresConnection::connect($server->dsn())->listen('news');
        $event = $loop->current();
        self::awaitReads('receiving has paused');
        self::$suspended = self::SECONDS;
        $suspendedAt = microtime(true);
        self::awaitReads('the client has checked the connection');
        for ($count = 1; $event instanceof Notification; ++$count) {
            $count === 20_000 ? $end->complete() : null;
            $loop->next();
            $event = $loop->current();
        }
        \assert($event instanceof Reconnected);

        return (float) $event->since->format('U.u') - $suspendedAt;
    }

    /** @return float seconds from the suspension, or shortly before, to {@see Reconnected::$since} */
    public static function suspendListener(): float
    {
        self::defineClock();
        $end = new DeferredFuture();
        $listen = static function (FakeConnection $client): FakeSession {
            $session = new FakeSession($client);
            $session->next();
            $session->complete('LISTEN');

            return $session;
        };
        $server = Answers::server(
            static fn(FakeConnection $client) => $client->stall(),
            static function (FakeConnection $client) use ($listen, $end): void {
                $listen($client);
                $end->getFuture()->await();
            },
            static function (FakeConnection $client) use ($listen): void {
                $listen($client)->next();
            },
        );
        $connection = PostgresConnection::connect($server->dsn());
        $loop = $connection->listen('news');
        $event = Async::run(static fn(): mixed => $loop->current());
        Eventually::holds(static fn(): bool => self::$reads > 0, 'the client reads the clock');
        self::$suspended = self::SECONDS;
        $suspendedAt = microtime(true);
        $reads = self::$reads;
        Eventually::holds(static fn(): bool => self::$reads > $reads, 'the client has checked the connection');
        $end->complete();
        $reconnected = $event->await();
        \assert($reconnected instanceof Reconnected);

        return (float) $reconnected->since->format('U.u') - $suspendedAt;
    }

    /** Waits until the timer that reads the connection has run. */
    private static function awaitReads(string $what): void
    {
        $reads = self::$reads;
        Eventually::holds(static fn(): bool => self::$reads > $reads + 1, $what);
    }

    private static function defineClock(): void
    {
        $code = 'namespace Spindle\Postgres\Internal; function microtime(bool $_): float {'
            . ' ++%1$s::$reads; return \microtime(true) + %1$s::$suspended; }';
        eval(\sprintf($code, '\\' . self::class));
    }
}
