<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Package;

/** Clients of the PostgreSQL benchmarks. */
enum Contestant: string
{
    case Pool = 'pool';
    case Connections = 'connections';
    case Pgsql = 'pgsql';
    case PgsqlBlocking = 'pgsql-blocking';
    case Pdo = 'pdo';
    case Amp = 'amp';
    case Pgbench = 'pgbench';
    case PgbenchPipeline = 'pgbench-pipeline';

    /** Values of --peers. */
    public const PEERS = ['pgsql', 'pdo', 'amp', 'pgbench'];

    /** Returns the name in tables. */
    public function label(): string
    {
        return match ($this) {
            self::Pool => 'Spindle, pool',
            self::Connections => 'Spindle, connections',
            self::Pgsql => 'ext-pgsql, asynchronous by hand',
            self::PgsqlBlocking => 'ext-pgsql, blocking',
            self::Pdo => 'PDO',
            self::Amp => Package::label('amphp/postgres'),
            self::Pgbench => 'pgbench',
            self::PgbenchPipeline => \sprintf('pgbench, pipelines of %d', Pgbench::PIPELINE),
        };
    }

    /** Returns the name in tables in which each contestant has one connection. */
    public function shortLabel(): string
    {
        return match ($this) {
            self::Connections => 'Spindle',
            self::Pgsql => 'ext-pgsql',
            default => $this->label(),
        };
    }

    /** Returns why the contestant is not available; null when it is. */
    public function missing(): ?string
    {
        return match ($this) {
            self::Pool, self::Connections => null,
            self::Pgsql, self::PgsqlBlocking => \extension_loaded('pgsql') ? null : 'ext-pgsql is not loaded',
            self::Pdo => \extension_loaded('pdo_pgsql') ? null : 'ext-pdo_pgsql is not loaded',
            self::Amp => class_exists(AmpClient::POOL) ? null : 'the package amphp/postgres is not installed',
            self::Pgbench, self::PgbenchPipeline => Pgbench::missing(),
        };
    }

    /** Returns the peer of --peers that includes this contestant; null for Spindle. */
    public function peer(): ?string
    {
        return $this->isSpindle() ? null : explode('-', $this->value)[0];
    }

    public function isSpindle(): bool
    {
        return $this === self::Pool || $this === self::Connections;
    }

    /** Returns whether fibers share the contestant's connections. */
    public function hasFibers(): bool
    {
        return $this->isSpindle() || $this === self::Amp;
    }

    public function isPgbench(): bool
    {
        return $this === self::Pgbench || $this === self::PgbenchPipeline;
    }

    /** @throws \LogicException when the contestant does not send statements itself */
    public function client(Target $target, Shape $shape): Client
    {
        return match ($this) {
            self::Pool => SpindleClient::pool($target, $shape),
            self::Connections => SpindleClient::connections($target, $shape),
            self::Pgsql => new PgsqlClient($target, $shape->connections),
            self::PgsqlBlocking => new PgsqlBlockingClient($target),
            self::Pdo => new PdoClient($target),
            self::Amp => new AmpClient($target, $shape),
            self::Pgbench, self::PgbenchPipeline => throw new \LogicException('pgbench is not started by this program'),
        };
    }

    /** @throws \LogicException when the contestant has no part in the measurements of large data */
    public function bulk(Target $target): BulkClient
    {
        return match ($this) {
            self::Connections => new SpindleBulk($target),
            self::Pgsql => new PgsqlBulk($target),
            self::Pdo => new PdoBulk($target),
            default => throw new \LogicException("{$this->label()} does not support this measurement"),
        };
    }
}
