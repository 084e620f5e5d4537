<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;
use PgSql\Result;
use Revolt\EventLoop;

/** ext-pgsql: blocking, except that a large parameter is sent as in an event loop. */
final class PgsqlBulk implements BulkClient
{
    private const ROWS_OF_A_FETCH = 1_000;

    private readonly Connection $connection;

    /** @var array<string, string> names of prepared statements, by SQL */
    private array $names = [];

    public function __construct(Target $target)
    {
        $this->connection = Pgsql::connect($target);
    }

    public function rows(string $sql): array
    {
        if (!isset($this->names[$sql])) {
            $this->names[$sql] = 's' . \count($this->names);
            pg_prepare($this->connection, $this->names[$sql], $sql);
        }
        $result = pg_execute($this->connection, $this->names[$sql], []);
        \assert($result instanceof Result);

        return self::typed(pg_fetch_all($result));
    }

    public function echo(string $bytes): string
    {
        $socket = Pgsql::nonBlockingSocket($this->connection);
        pg_send_query_params($this->connection, 'SELECT $1::bytea', [pg_escape_bytea($this->connection, $bytes)]);
        while (pg_flush($this->connection) === 0) {
            self::wait(static fn(\Closure $resume): string => EventLoop::onWritable($socket, $resume));
        }
        do {
            self::wait(static fn(\Closure $resume): string => EventLoop::onReadable($socket, $resume));
            pg_consume_input($this->connection);
        } while (pg_connection_busy($this->connection));
        $echo = '';
        while (($result = pg_get_result($this->connection)) !== false) {
            $echo .= pg_unescape_bytea((string) pg_fetch_result($result, 0, 0));
        }

        return $echo;
    }

    public function stream(string $sql): iterable
    {
        pg_query($this->connection, 'BEGIN');
        pg_query($this->connection, "DECLARE rows NO SCROLL CURSOR FOR {$sql}");
        do {
            $result = pg_query($this->connection, 'FETCH ' . self::ROWS_OF_A_FETCH . ' FROM rows');
            \assert($result instanceof Result);
            yield from $rows = self::typed(pg_fetch_all($result));
        } while ($rows !== []);
        pg_query($this->connection, 'COMMIT');
    }

    public function copyArrays(string $table, iterable $rows): void
    {
        $lines = [];
        foreach ($rows as $row) {
            $lines[] = implode("\t", $row) . "\n";
        }
        pg_copy_from($this->connection, $table, $lines);
    }

    public function copyStrings(string $table, iterable $lines): void
    {
        pg_query($this->connection, "COPY {$table} FROM STDIN");
        foreach ($lines as $line) {
            pg_put_line($this->connection, $line);
        }
        pg_put_line($this->connection, "\\.\n");
        pg_end_copy($this->connection);
    }

    public function copyOut(string $table): iterable
    {
        return array_filter((array) pg_copy_to($this->connection, $table), is_string(...));
    }

    public function close(): void
    {
        pg_close($this->connection);
    }

    /**
     * @param array<array<array-key, mixed>> $rows
     *
     * @return list<array<array-key, mixed>>
     */
    private static function typed(array $rows): array
    {
        $typed = [];
        /** @var array{id: string, name: string, score: string} $row */
        foreach ($rows as $row) {
            $typed[] = ['id' => (int) $row['id'], 'name' => $row['name'], 'score' => (float) $row['score']];
        }

        return $typed;
    }

    /** @param \Closure(\Closure(): void): string $watch creates a watcher with the given callback */
    private static function wait(\Closure $watch): void
    {
        $suspension = EventLoop::getSuspension();
        $watcher = $watch(static fn() => $suspension->resume());
        $suspension->suspend();
        EventLoop::cancel($watcher);
    }
}
