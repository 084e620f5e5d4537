<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** PDO, which blocks and fetches all rows of a result at once. */
final class PdoBulk implements BulkClient
{
    private readonly \PDO $pdo;

    /** @var array<string, \PDOStatement> by SQL */
    private array $statements = [];

    public function __construct(Target $target)
    {
        $this->pdo = PdoClient::connect($target);
    }

    public function rows(string $sql): array
    {
        $statement = $this->statements[$sql] ??= $this->pdo->prepare($sql);
        $statement->execute();
        $rows = [];
        /** @var array{id: int, name: string, score: float|string} $row */
        foreach ($statement->fetchAll(\PDO::FETCH_ASSOC) as $row) {
            $row['score'] = (float) $row['score'];
            $rows[] = $row;
        }

        return $rows;
    }

    public function echo(string $bytes): string
    {
        $statement = $this->pdo->prepare('SELECT ?::bytea');
        $statement->bindValue(1, $bytes, \PDO::PARAM_LOB);
        $statement->execute();
        $row = $statement->fetch(\PDO::FETCH_NUM);

        return \is_array($row) && \is_resource($row[0]) ? (string) stream_get_contents($row[0]) : '';
    }

    public function stream(string $sql): iterable
    {
        $statement = $this->pdo->prepare($sql);
        $statement->execute();
        while (\is_array($row = $statement->fetch(\PDO::FETCH_ASSOC))) {
            /** @var array{id: int, name: string, score: float|string} $row */
            $row['score'] = (float) $row['score'];
            yield $row;
        }
    }

    public function copyArrays(string $table, iterable $rows): void
    {
        $lines = [];
        foreach ($rows as $row) {
            $lines[] = implode("\t", $row) . "\n";
        }
        $this->copy($table, $lines);
    }

    public function copyStrings(string $table, iterable $lines): void
    {
        $this->copy($table, array_values([...$lines]));
    }

    public function copyOut(string $table): iterable
    {
        return array_filter((array) $this->call('copyToArray', $table), is_string(...));
    }

    /** Does nothing: PDO closes a connection when its last reference is gone. */
    public function close(): void {}

    /** @param list<string> $lines */
    private function copy(string $table, array $lines): void
    {
        $this->call('copyFromArray', $table, $lines);
    }

    /** Calls a method by its name in this PHP: PDO::pgsqlCopyFromArray(), or Pdo\Pgsql::copyFromArray() since 8.4. */
    private function call(string $method, mixed ...$arguments): mixed
    {
        $callable = [$this->pdo, method_exists($this->pdo, $method) ? $method : 'pgsql' . ucfirst($method)];
        \assert(\is_callable($callable));

        return $callable(...$arguments);
    }
}
