<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PostgresConnection;

final readonly class SpindleBulk implements BulkClient
{
    private PostgresConnection $connection;

    public function __construct(Target $target)
    {
        $this->connection = PostgresConnection::connect($target->dsn());
    }

    public function rows(string $sql): array
    {
        return $this->connection->query($sql)->all();
    }

    public function echo(string $bytes): string
    {
        $echo = $this->connection->query('SELECT $1::bytea', [$bytes])->value();
        \assert(\is_string($echo));

        return $echo;
    }

    public function stream(string $sql): iterable
    {
        return $this->connection->stream($sql);
    }

    public function copyArrays(string $table, iterable $rows): void
    {
        $this->connection->copyFrom("COPY {$table} FROM STDIN", $rows);
    }

    public function copyStrings(string $table, iterable $lines): void
    {
        $this->connection->copyFrom("COPY {$table} FROM STDIN", $lines);
    }

    public function copyOut(string $table): iterable
    {
        return $this->connection->copyTo("COPY {$table} TO STDOUT");
    }

    public function close(): void
    {
        $this->connection->close();
    }
}
