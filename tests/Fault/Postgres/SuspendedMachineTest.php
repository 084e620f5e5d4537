<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\DeferredFuture;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\Reconnected;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Host;
use Spindle\Tests\Postgres\FakeConnection;
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

    /** @return float seconds from the suspension, or shortly before, to {@see Reconnected::$since} */
    public static function suspendListener(): float
    {
        $code = 'namespace Spindle\Postgres\Internal; function microtime(bool $_): float {'
            . ' ++%1$s::$reads; return \microtime(true) + %1$s::$suspended; }';
        eval(\sprintf($code, '\\' . self::class));
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
}
