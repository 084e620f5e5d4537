<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Postgres;

use Amp\Future;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\ResultTooLargeException;
use Spindle\Postgres\Transaction;
use Spindle\Tests\Async;

use function Amp\Future\await;

/** Programs with a memory_limit that results reach; see {@see \Spindle\Tests\Host}. */
final class MemoryPrograms
{
    /**
     * Executes a statement on four connections at once, and keeps all results.
     *
     * @return array{list<string>, array<mixed>, array<int>} outcome for each connection; results of other statements
     *     during and after that
     */
    public static function keepResults(string $dsn, string $sql, string $method): array
    {
        $connections = array_map(static fn(): PostgresConnection => PostgresConnection::connect($dsn), range(1, 4));
        $kept = new \ArrayObject();
        $keep = static function (PostgresConnection $connection) use ($sql, $method, $kept): void {
            $result = $connection->query($sql);
            $kept->append(match ($method) {
                'all' => $result->all(),
                'value' => [$result->value()],
                default => $result,
            });
        };
        $statements = array_map(
            static fn(PostgresConnection $connection): Future => Async::run(
                static fn(): string => self::outcome(static fn() => $keep($connection)),
            ),
            $connections,
        );
        $other = PostgresConnection::connect($dsn);
        $during = Async::run(static fn(): array => array_map(
            static fn(int $i): mixed => $other->query('SELECT $1::int', [$i])->value(),
            range(1, 20),
        ));
        $outcomes = await($statements);
        $kept->exchangeArray([]);
        $after = array_map(
            static fn(PostgresConnection $connection): int
                => \count($connection->query("SELECT repeat('x', 100) FROM generate_series(1, 10000)")->column()),
            $connections,
        );

        return [array_values($outcomes), $during->await(), $after];
    }

    /** @return array<string, mixed> outcomes in a process of which nine tenths of the memory are in use */
    public static function haveLittleMemory(string $dsn): array
    {
        $connection = PostgresConnection::connect($dsn);
        $rows = static fn(int $count): string => "SELECT repeat('x', 1000) FROM generate_series(1, {$count})";
        $row = "SELECT repeat('x', 10000000)";
        $connection->query($rows(2_000))->all(); // loads the classes, and leaves room for small results to PHP
        $limit = ini_parse_quantity(\ini_get('memory_limit'));
        $used = str_repeat('x', intdiv($limit * 9, 10) - memory_get_usage(true));

        return [
            'a value' => $connection->query('SELECT 1')->value(),
            'a small result' => \count($connection->query($rows(300))->all()),
            'a large result' => self::outcome(static fn(): mixed => $connection->query($rows(20_000))),
            'a large row' => self::outcome(static fn(): mixed => $connection->query($row)),
            'a large row of a COPY' => self::outcome(
                static fn(): int => iterator_count($connection->copyTo("COPY ({$row}) TO STDOUT")),
            ),
            'a stream' => iterator_count($connection->stream($rows(20_000))),
            'a transaction' => $connection->transaction(static function (Transaction $transaction) use ($rows): mixed {
                self::outcome(static fn(): mixed => $transaction->query($rows(20_000)));

                return $transaction->query('SELECT 2')->value();
            }),
            'used' => \strlen($used) > 0,
        ];
    }

    /** @return string the message of the exception; '' if there is none */
    private static function outcome(\Closure $use): string
    {
        try {
            $use();

            return '';
        } catch (ResultTooLargeException $failure) {
            return $failure->getMessage();
        }
    }
}
