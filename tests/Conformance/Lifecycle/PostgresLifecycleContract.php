<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\After;
use Revolt\EventLoop;
use Spindle\Lifecycle;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresOptions;
use Spindle\Tests\Conformance\Postgres\Gate;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Postgres\UsesCluster;

use function Amp\async;

/** The contract for a client of PostgreSQL. Its work is a statement that waits at a gate on the server. */
abstract class PostgresLifecycleContract extends LifecycleContract
{
    use RefusesCloseWithinWork;
    use UsesCluster;

    private ?Gate $gate = null;

    #[After(-4)]
    protected function awaitCancelRequests(): void
    {
        $this->finish();
        Eventually::holds(
            fn(): bool => array_diff(EventLoop::getIdentifiers(), $this->before['watchers']) === [],
            'the requests by which kill() stops statements on the server have ended',
        );
    }

    protected function options(): PostgresOptions
    {
        return PostgresOptions::fromDsn(Cluster::shared()->dsn());
    }

    protected function begin(Lifecycle $object): Future
    {
        $gate = $this->gate = new Gate();
        $link = self::link($object);
        $work = async(static fn(): bool => $link->query($gate->statement())->value() === 'passed');
        $gate->awaitStatements(1);

        return $work;
    }

    public function testCloseIsRefusedInCodeOfAParameter(): void
    {
        $object = $this->create();
        $link = self::link($object);
        $close = new class ($object) implements \JsonSerializable {
            /** @var list<string> */
            public array $refusals = [];

            public function __construct(private readonly Lifecycle $object) {}

            public function jsonSerialize(): int
            {
                try {
                    $this->object->close(new TimeoutCancellation(2));
                } catch (\LogicException $refusal) {
                    $this->refusals[] = $refusal->getMessage();
                }

                return 7;
            }
        };
        for ($run = 1; $run <= 2; ++$run) { // the second statement is prepared
            self::assertSame(7, $link->query('SELECT $1::json::text::int', [$close])->value());
            self::assertCount($run, $close->refusals);
        }
        self::assertStringContainsString('close() would wait for itself', $close->refusals[1]);
    }

    public function testCloseInAFiberWaitsForAStatementOutsideOfFibers(): void
    {
        $object = $this->create();
        $closed = async(static fn() => $object->close());

        self::assertSame(7, self::link($object)->query('SELECT 7')->value());
        self::assertNull($closed->await());
    }

    protected function runWithinWork(Lifecycle $object, \Closure $call): void
    {
        self::link($object)->transaction(static fn() => $call());
    }

    protected function finish(): void
    {
        $this->gate?->open();
    }

    protected function giveMore(Lifecycle $object): void
    {
        self::link($object)->query('SELECT 1');
    }

    protected function refusal(): string
    {
        return ConnectionClosedException::class;
    }

    private static function link(Lifecycle $object): PostgresLink
    {
        return $object instanceof PostgresLink ? $object : self::fail('Not a client of PostgreSQL');
    }
}
