<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use PgSql\Connection;

/** Progress of one connection through its statements. */
final class PgsqlTurn
{
    /** Whether all results since {@see begin()} were right. */
    public bool $isRight = true;

    private int $id = 0;
    private int $position = 0;

    /**
     * @param non-empty-list<Step|null> $steps null begins or ends a transaction
     * @param non-empty-list<string>    $names names of the prepared statements
     */
    public function __construct(
        private readonly Connection $connection,
        private readonly array $steps,
        private readonly array $names,
    ) {}

    public function begin(): void
    {
        $this->id = Tables::anyItem();
        $this->position = 0;
        $this->isRight = true;
        $this->send();
    }

    /** Reads a result that has arrived, and sends the next statement. Returns true after the last result. */
    public function isDone(): bool
    {
        pg_consume_input($this->connection);
        if (pg_connection_busy($this->connection)) {
            return false;
        }
        $step = $this->steps[$this->position];
        while (($result = pg_get_result($this->connection)) !== false) {
            $this->isRight = $this->isRight && ($step === null
                ? pg_result_status($result) === \PGSQL_COMMAND_OK
                : $step->isRight(
                    $this->id,
                    $step->reads ? pg_fetch_result($result, 0, 0) : null,
                    pg_affected_rows($result),
                ));
        }
        if (++$this->position === \count($this->steps)) {
            return true;
        }
        $this->send();

        return false;
    }

    private function send(): void
    {
        pg_send_execute(
            $this->connection,
            $this->names[$this->position],
            $this->steps[$this->position] === null ? [] : [$this->id],
        );
    }
}
