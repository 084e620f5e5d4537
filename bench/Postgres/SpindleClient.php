<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Transaction;

use function Amp\async;
use function Amp\Future\await;

final readonly class SpindleClient implements Client
{
    /** @param non-empty-list<PostgresPool|PostgresConnection> $links used by fibers in turn */
    private function __construct(private array $links, private int $fibers) {}

    public static function pool(Target $target, Shape $shape): self
    {
        return new self([new PostgresPool($target->dsn(), $shape->connections)], $shape->fibers);
    }

    public static function connections(Target $target, Shape $shape): self
    {
        $connections = [PostgresConnection::connect($target->dsn())];
        while (\count($connections) < $shape->connections) {
            $connections[] = PostgresConnection::connect($target->dsn());
        }

        return new self($connections, $shape->fibers);
    }

    public function run(Load $load, int $count): int
    {
        [$left, $right, $fibers] = [$count, 0, []];
        for ($fiber = 0; $fiber < $this->fibers; ++$fiber) {
            $link = $this->links[$fiber % \count($this->links)];
            $fibers[] = async(static function () use ($link, $load, &$left, &$right): void {
                while ($left-- > 0) {
                    $id = Tables::anyItem();
                    $right += (int) ($load->isTransaction
                        ? $link->transaction(
                            static fn(Transaction $transaction): bool => self::isRight($transaction, $load, $id),
                        )
                        : self::isRight($link, $load, $id));
                }
            });
        }
        await($fibers);

        return $right;
    }

    public function close(): void
    {
        foreach ($this->links as $link) {
            $link->close();
        }
    }

    private static function isRight(PostgresLink $link, Load $load, int $id): bool
    {
        $right = true;
        foreach ($load->steps as $step) {
            $result = $link->query($step->sql, [$id]);
            $right = $step->isRight($id, $step->reads ? $result->value() : null, $result->affectedRows) && $right;
        }

        return $right;
    }
}
