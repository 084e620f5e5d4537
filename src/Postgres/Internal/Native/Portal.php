<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Result;

/** A statement whose rows are fetched while they are taken, in an open transaction. */
final readonly class Portal
{
    /**
     * The first fetch asks for FIRST_ROWS rows, later ones for about FETCH_BYTES bytes, and none for more than MAX_ROWS
     * rows.
     */
    private const FIRST_ROWS = 50;
    private const FETCH_BYTES = 0x4_0000;
    private const MAX_ROWS = 5_000;

    /** @param string $name unique within the session */
    public function __construct(private Pipeline $pipeline, private string $name) {}

    /** Returns an exchange for further rows. */
    public function exchange(): Exchange
    {
        $exchange = new Exchange();
        $exchange->binary = $exchange->isStreamed = true;

        return $exchange;
    }

    /**
     * Returns the messages that open the portal and fetch the first rows.
     *
     * @param list<string|null> $values
     *
     * @return non-empty-list<string>
     */
    public function opening(PreparedStatement $statement, string $sql, #[\SensitiveParameter] array $values): array
    {
        return [
            $statement->name === '' ? FrontendMessages::parse('', $sql) : '',
            ...$statement->bind($values, $this->name),
            FrontendMessages::execute($this->name, self::FIRST_ROWS) . FrontendMessages::SYNC,
        ];
    }

    /**
     * @param Exchange $exchange exchange that opens the portal
     * @param \Closure(Exchange, ServerError): \Throwable $failed turns a server error into an exception
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function rows(
        #[\SensitiveParameter]
        Exchange $exchange,
        ?Columns $columns,
        #[\SensitiveParameter]
        \Closure $failed,
        ?Cancellation $cancellation,
    ): \Generator {
        $next = null;
        try {
            for ($index = 0; $exchange !== null; [$exchange, $next] = [$next, null]) {
                do {
                    if ($exchange->chunks === []) {
                        $this->pipeline->await($exchange, $cancellation);
                    }
                    // The next rows arrive while these are taken.
                    $next ??= $this->fetchMore($exchange, $cancellation);
                    $cancellation?->throwIfRequested();
                    $rows = $exchange->take();
                    $this->pipeline->pause(false);
                    foreach (new Result($columns, $rows, $rows->rows, 0) as $row) {
                        yield $index++ => $row;
                    }
                } while ($exchange->chunks !== [] || !$exchange->done);
                self::ensureComplete($exchange, $failed);
                $next ??= $this->fetchMore($exchange, $cancellation);
            }
        } finally {
            if ($this->pipeline->isOpen()) {
                // The next rows were fetched ahead. Cancelling the fetch would fail the transaction.
                $ahead = $next ?? $exchange;
                if ($ahead !== null) {
                    $ahead->discarded = true;
                    $this->pipeline->pause(false);
                }
                $this->pipeline->closing .= FrontendMessages::closePortal($this->name);
            }
        }
    }

    /** @param \Closure(Exchange, ServerError): \Throwable $failed */
    private static function ensureComplete(
        #[\SensitiveParameter]
        Exchange $exchange,
        #[\SensitiveParameter]
        \Closure $failed,
    ): void {
        if ($exchange->copy !== '') {
            throw new \LogicException('A COPY needs copyFrom() or copyTo()');
        }
        if ($exchange->refusal !== null) {
            throw $exchange->refusal;
        }
        if ($exchange->error !== null) {
            throw $failed($exchange, $exchange->error);
        }
    }

    /** @return Exchange|null null when there are no more rows, or that is not known yet */
    private function fetchMore(#[\SensitiveParameter] Exchange $last, ?Cancellation $cancellation): ?Exchange
    {
        if (!$last->done || !$last->suspended || $last->refusal !== null) {
            return null;
        }
        $rows = self::FETCH_BYTES / ($last->size / max(1, $last->rows) + 1);

        $exchange = $this->exchange();
        $this->pipeline->submit(
            $exchange,
            [
                FrontendMessages::execute($this->name, (int) max(1, min(self::MAX_ROWS, $rows)))
                    . FrontendMessages::SYNC,
            ],
            $cancellation,
        );

        return $exchange;
    }
}
