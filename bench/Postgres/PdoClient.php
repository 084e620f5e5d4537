<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** PDO with blocking prepared statements on one connection. */
final class PdoClient implements Client
{
    private readonly \PDO $pdo;

    /** @var array<string, \PDOStatement> by SQL */
    private array $statements = [];

    public function __construct(Target $target)
    {
        $this->pdo = self::connect($target);
    }

    public static function connect(Target $target): \PDO
    {
        return new \PDO(
            "pgsql:{$target->dsn()}",
            options: [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION, \PDO::ATTR_EMULATE_PREPARES => false],
        );
    }

    public function run(Load $load, int $count): int
    {
        $right = 0;
        for ($i = 0; $i < $count; ++$i) {
            $right += (int) ($load->isTransaction ? $this->isTransactionRight(
                $load,
                Tables::anyItem(),
            ) : $this->isRight($load, Tables::anyItem()));
        }

        return $right;
    }

    /** Does nothing: PDO closes a connection when its last reference is gone. */
    public function close(): void {}

    private function isTransactionRight(Load $load, int $id): bool
    {
        $this->pdo->beginTransaction();
        $right = $this->isRight($load, $id);

        return $this->pdo->commit() && $right;
    }

    private function isRight(Load $load, int $id): bool
    {
        $right = true;
        foreach ($load->steps as $step) {
            $statement = $this->statements[$step->sql] ?? $this->prepare($step->sql);
            $statement->execute([$id]);
            $right = $step->isRight($id, $step->reads ? $statement->fetchColumn() : null, $statement->rowCount())
                && $right;
        }

        return $right;
    }

    private function prepare(string $sql): \PDOStatement
    {
        $statement = $this->pdo->prepare(str_replace('$1', '?', $sql));
        \assert($statement !== false);

        return $this->statements[$sql] = $statement;
    }
}
