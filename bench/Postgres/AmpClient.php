<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use function Amp\async;
use function Amp\Future\await;

/**
 * The pool of amphp/postgres, if installed. It runs without its default DISCARD ALL before each use, which would drop
 * prepared statements.
 */
final class AmpClient implements Client
{
    public const POOL = 'Amp\Postgres\PostgresConnectionPool';
    private const CONFIG = 'Amp\Postgres\PostgresConfig';
    private const IDLE_SECONDS = 60;

    private readonly object $pool;

    /** @var array<string, object> by SQL */
    private array $statements = [];

    public function __construct(Target $target, private readonly Shape $shape)
    {
        $parameters = $target->parameters;
        ['host' => $host, 'port' => $port, 'user' => $user, 'dbname' => $database] = $parameters;
        $config = self::make(
            self::CONFIG,
            $host,
            (int) $port,
            $user,
            $parameters['password'] ?? null,
            $database,
            null,
            $parameters['sslmode'] ?? null,
        );
        $this->pool = self::make(self::POOL, $config, $shape->connections, self::IDLE_SECONDS, false);
    }

    public function run(Load $load, int $count): int
    {
        [$left, $right, $fibers] = [$count, 0, []];
        for ($fiber = 0; $fiber < $this->shape->fibers; ++$fiber) {
            $fibers[] = async(function () use ($load, &$left, &$right): void {
                while ($left-- > 0) {
                    $right += (int) $this->isUnitRight($load, Tables::anyItem());
                }
            });
        }
        await($fibers);

        return $right;
    }

    public function close(): void
    {
        $this->statements = [];
        self::call($this->pool, 'close');
    }

    private function isUnitRight(Load $load, int $id): bool
    {
        return match (true) {
            $load->isTransaction => $this->isTransactionRight($load, $id),
            // Each statement that is prepared through the pool keeps a connection. Several would wait for each other
            // forever.
            \count($load->steps) > 1 => self::isRight(
                $load,
                $id,
                fn(string $sql, int $id): mixed => self::call($this->pool, 'execute', $sql, [$id]),
            ),
            default => self::isRight($load, $id, $this->executePrepared(...)),
        };
    }

    private function isTransactionRight(Load $load, int $id): bool
    {
        $transaction = self::call($this->pool, 'beginTransaction');
        $right = self::isRight(
            $load,
            $id,
            static fn(string $sql, int $id): mixed => self::call($transaction, 'execute', $sql, [$id]),
        );
        self::call($transaction, 'commit');

        return $right;
    }

    /** @param \Closure(string, int): mixed $execute */
    private static function isRight(Load $load, int $id, \Closure $execute): bool
    {
        $right = true;
        foreach ($load->steps as $step) {
            $result = $execute($step->sql, $id);
            $row = $step->reads ? self::call($result, 'fetchRow') : null;
            $affected = $step->reads ? null : self::call($result, 'getRowCount');
            $right = $step->isRight($id, \is_array($row) ? reset($row) : null, \is_int($affected) ? $affected : 0)
                && $right;
        }

        return $right;
    }

    private function executePrepared(string $sql, int $id): mixed
    {
        if (!isset($this->statements[$sql])) {
            $statement = self::call($this->pool, 'prepare', $sql);
            \assert(\is_object($statement));
            $this->statements[$sql] ??= $statement;
        }

        return self::call($this->statements[$sql], 'execute', [$id]);
    }

    private static function make(string $class, mixed ...$arguments): object
    {
        \assert(class_exists($class));

        return new $class(...$arguments);
    }

    /** Calls a method of a class that code can't name, because the package may not be installed. */
    private static function call(mixed $object, string $method, mixed ...$arguments): mixed
    {
        $callable = [$object, $method];
        \assert(\is_callable($callable));

        return $callable(...$arguments);
    }
}
