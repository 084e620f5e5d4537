<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;

/**
 * The fastest client that can be written by hand on ext-pgsql's asynchronous functions: prepared statements, one
 * pending per connection, without fibers or an event loop.
 */
final class PgsqlClient implements Client
{
    /** @var non-empty-list<Connection> */
    private readonly array $connections;

    /** @var non-empty-list<resource> sockets of the connections */
    private readonly array $sockets;

    /** @var array<string, string> names of prepared statements, by SQL */
    private array $names = [];

    public function __construct(Target $target, int $connections)
    {
        $this->connections = array_map(static fn(): Connection => Pgsql::connect($target), range(1, $connections));
        $this->sockets = array_map(Pgsql::nonBlockingSocket(...), $this->connections);
    }

    public function run(Load $load, int $count): int
    {
        $steps = $load->isTransaction ? [null, ...$load->steps, null] : $load->steps;
        $names = $this->prepare($load);
        $turns = array_map(
            static fn(Connection $connection): PgsqlTurn => new PgsqlTurn($connection, $steps, $names),
            $this->connections,
        );
        [$busy, $right] = [[], 0];
        foreach (\array_slice($turns, 0, $count) as $key => $turn) {
            $turn->begin();
            $busy[$key] = $this->sockets[$key];
        }
        $left = $count - \count($busy);
        while ($busy !== []) {
            [$ready, $none] = [$busy, null];
            stream_select($ready, $none, $none, null);
            foreach ($ready as $key => $_) {
                $turn = $turns[$key];
                if (!$turn->isDone()) {
                    continue;
                }
                $right += (int) $turn->isRight;
                if ($left-- > 0) {
                    $turn->begin();
                } else {
                    unset($busy[$key]);
                }
            }
        }

        return $right;
    }

    public function close(): void
    {
        array_map(pg_close(...), $this->connections);
    }

    /** @return non-empty-list<string> names of the statements to send, the same on each connection */
    private function prepare(Load $load): array
    {
        $statements = array_map(static fn(Step $step): string => $step->sql, $load->steps);
        $statements = $load->isTransaction ? ['BEGIN', ...$statements, 'COMMIT'] : $statements;
        foreach (array_diff($statements, array_keys($this->names)) as $sql) {
            $this->names[$sql] = 's' . \count($this->names);
            foreach ($this->connections as $connection) {
                pg_prepare($connection, $this->names[$sql], $sql);
            }
        }

        return array_map(fn(string $sql): string => $this->names[$sql], $statements);
    }
}
