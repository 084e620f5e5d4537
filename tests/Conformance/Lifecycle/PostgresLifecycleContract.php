<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Lifecycle;

use Amp\Future;
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
