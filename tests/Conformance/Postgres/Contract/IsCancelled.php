<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres\Contract;

use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\NullCancellation;
use Amp\TimeoutCancellation;
use Amp\TimeoutException;
use Spindle\Postgres\PostgresLink;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Conformance\Postgres\LinkContract;
use Spindle\Tests\Eventually;

/**
 * Tests a cancellation before, during and after a call, and the link afterwards.
 *
 * @phpstan-require-extends LinkContract
 */
trait IsCancelled
{
    public function testAStatementThatWasCancelledBeforehandIsNotSent(): void
    {
        $link = $this->link();
        $table = self::table('i int');
        $source = new DeferredCancellation();
        $source->cancel(new \DomainException('enough'));
        $cancellation = $source->getCancellation();
        foreach ([
            static fn(PostgresLink $link) => $link->query("INSERT INTO {$table} VALUES (1)", [], $cancellation),
            static fn(PostgresLink $link) => $link->query("INSERT INTO {$table} VALUES (\$1)", ['1'], $cancellation),
            static fn(PostgresLink $link) => $link->execute("INSERT INTO {$table} VALUES (1)", [], $cancellation),
            static fn(PostgresLink $link)
                => iterator_to_array($link->stream("INSERT INTO {$table} VALUES (1)", [], $cancellation)),
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", [[1]], $cancellation),
            static fn(PostgresLink $link) => $link->copyFrom("COPY {$table} FROM STDIN", ["1\n"], $cancellation),
            static fn(PostgresLink $link)
                => iterator_to_array($link->copyTo("COPY {$table} TO STDOUT", $cancellation)),
            static fn(PostgresLink $link) => $link->executeScript("INSERT INTO {$table} VALUES (1)", $cancellation),
        ] as $verb) {
            $thrown = self::refused(CancelledException::class, $link, $verb);
            self::assertSame('enough', $thrown->getPrevious()?->getMessage());
        }
        self::assertSame(0, $link->query("SELECT count(*) FROM {$table}")->value());
    }

    public function testAStatementThatRunsIsStoppedOnTheServer(): void
    {
        $link = $this->link();
        $gate = new Gate();
        foreach ([
            static fn(PostgresLink $link, DeferredCancellation $source)
                => $link->query($gate->statement(), [], $source->getCancellation()),
            static fn(PostgresLink $link, DeferredCancellation $source)
                => $link->query($gate->statement('$1::text'), ['x'], $source->getCancellation()),
            static fn(PostgresLink $link, DeferredCancellation $source)
                => $link->execute($gate->statement(), [], $source->getCancellation()),
            static fn(PostgresLink $link, DeferredCancellation $source)
                => iterator_to_array($link->stream($gate->statement(), [], $source->getCancellation())),
            static fn(PostgresLink $link, DeferredCancellation $source)
                => iterator_to_array($link->copyTo(
                    "COPY ({$gate->statement()}) TO STDOUT",
                    $source->getCancellation(),
                )),
            static fn(PostgresLink $link, DeferredCancellation $source)
                => $link->executeScript("{$gate->statement()}; {$gate->statement()}", $source->getCancellation()),
        ] as $verb) {
            $source = new DeferredCancellation();
            $future = Async::run(
                static fn()
                    => self::refused(
                        CancelledException::class,
                        $link,
                        static fn(PostgresLink $link) => $verb($link, $source),
                    ),
            );
            $gate->awaitStatements(1);
            $source->cancel(new \DomainException('enough'));

            self::assertSame('enough', $future->await()->getPrevious()?->getMessage());
            $gate->awaitStatements(0);
        }
    }

    public function testTheCallerIsFreeAtOnce(): void
    {
        $link = $this->link();
        $gate = new Gate();
        $source = new DeferredCancellation();
        $future = Async::run(
            static fn() => self::thrown(
                CancelledException::class,
                static fn() => $link->query($gate->statement(), [], $source->getCancellation()),
            ),
        );
        $gate->awaitStatements(1);
        $source->cancel();
        \Amp\delay(0);
        $isFree = $future->isComplete();

        $future->await();
        Eventually::holds(static fn(): bool => $gate->waiting() === 0, 'the server has stopped the statement');
        self::assertTrue($isFree);
    }

    public function testATimeoutIsACancellation(): void
    {
        $link = $this->link();
        $thrown = self::refused(
            CancelledException::class,
            $link,
            static fn(PostgresLink $link) => $link->query('SELECT pg_sleep(1000)', [], new TimeoutCancellation(0.01)),
        );

        self::assertInstanceOf(TimeoutException::class, $thrown->getPrevious());
    }

    public function testACancellationThatComesLateOrNeverChangesNothing(): void
    {
        $link = $this->link();
        $source = new DeferredCancellation();

        self::assertSame(1, $link->query('SELECT 1', [], new NullCancellation())->value());
        $result = $link->query('SELECT generate_series(1, 3)', [], $source->getCancellation());
        $source->cancel();
        self::assertSame([1, 2, 3], $result->column());
        self::assertUsable($link);
    }

    public function testOneCancelledStatementLeavesTheNextOnes(): void
    {
        $link = $this->link();
        for ($i = 0; $i < 20; ++$i) {
            $source = new DeferredCancellation();
            \Revolt\EventLoop::delay($i / 10_000, static fn() => $source->cancel());
            self::refused(
                CancelledException::class,
                $link,
                static fn(PostgresLink $link) => $link->query('SELECT pg_sleep(1000)', [], $source->getCancellation()),
            );
            self::assertSame($i, $link->query('SELECT $1::int', [$i])->value());
        }
    }
}
