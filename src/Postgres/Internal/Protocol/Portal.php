<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Amp\Cancellation;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Result;

/** A portal: a cursor of PostgreSQL's protocol, from which the rows of a stream are fetched in an open transaction. */
final readonly class Portal
{
    private const FIRST_ROWS = 50;

    /** Target bytes of each fetch after the first. The average size of the last rows gives the number of rows. */
    private const FETCH_BYTES = 0x4_0000;

    private const MAX_ROWS = 5_000;

    /** @param string $name unique within the session */
    public function __construct(private Pipeline $pipeline, private string $name) {}

    /** @param bool $binary whether the rows have the formats of {@see Columns::$formats} */
    public function exchange(bool $binary): Exchange
    {
        $exchange = new Exchange();
        $exchange->binary = $binary;
        $exchange->isStreamed = true;

        return $exchange;
    }

    /**
     * @param list<string|null> $values
     *
     * @return non-empty-list<string> messages that open the portal and fetch the first rows
     */
    public function opening(PreparedStatement $statement, string $sql, #[\SensitiveParameter] array $values): array
    {
        return [
            $statement->preparation($sql),
            ...$statement->bind($values, $this->name),
            FrontendMessages::execute($this->name, self::FIRST_ROWS) . FrontendMessages::SYNC,
        ];
    }

    /**
     * Yields all rows. Fetches the next rows while the caller processes earlier ones.
     *
     * @param Exchange $exchange exchange that opens the portal
     * @param \Closure(): ?Columns $columns called once the server has described the columns
     * @param \Closure(Exchange, ServerError): \Throwable $createException returns the exception for a server error
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function rows(
        #[\SensitiveParameter]
        Exchange $exchange,
        \Closure $columns,
        #[\SensitiveParameter]
        \Closure $createException,
        ?Cancellation $cancellation,
    ): \Generator {
        $next = $known = null;
        $rowBytes = 0;
        try {
            for ($index = 0; $exchange !== null; [$exchange, $next] = [$next, null]) {
                do {
                    if ($exchange->rows === null) {
                        $this->pipeline->await($exchange, $cancellation);
                    }
                    $rows = $exchange->takeRows();
                    $rowBytes = $rows === null ? $rowBytes : $rows->size / $rows->count;
                    $next ??= $this->fetchMore($exchange, $rowBytes, $cancellation);
                    $cancellation?->throwIfRequested();
                    $this->pipeline->pause(false);
                    if ($rows !== null) {
                        $known ??= $columns();
                        foreach (new Result($known, $rows, $rows->count) as $row) {
                            yield $index++ => $row;
                        }
                    }
                } while ($exchange->rows !== null || !$exchange->done);
                self::ensureComplete($exchange, $createException);
                $next ??= $this->fetchMore($exchange, $rowBytes, $cancellation);
            }
        } finally {
            if ($this->pipeline->isOpen()) {
                // The rows of the last fetch are only dropped: cancelling the fetch would make the transaction fail.
                $lastFetch = $next ?? $exchange;
                if ($lastFetch !== null) {
                    $lastFetch->discarded = true;
                    $this->pipeline->pause(false);
                }
                $this->pipeline->pendingCloses .= FrontendMessages::closePortal($this->name);
            }
        }
    }

    /** @param \Closure(Exchange, ServerError): \Throwable $createException */
    private static function ensureComplete(
        #[\SensitiveParameter]
        Exchange $exchange,
        #[\SensitiveParameter]
        \Closure $createException,
    ): void {
        if ($exchange->copyResponse !== '') {
            throw new \LogicException('A COPY needs copyFrom() or copyTo()');
        }
        if ($exchange->tooLarge !== null) {
            throw $exchange->tooLarge;
        }
        if ($exchange->serverError !== null) {
            throw $createException($exchange, $exchange->serverError);
        }
    }

    /** Sends the next fetch. Returns null instead if the last fetch is incomplete, or the portal has no more rows. */
    private function fetchMore(
        #[\SensitiveParameter]
        Exchange $last,
        int|float $rowBytes,
        ?Cancellation $cancellation,
    ): ?Exchange {
        if (!$last->done || !$last->isPortalSuspended || $last->tooLarge !== null) {
            return null;
        }
        $exchange = $this->exchange($last->binary);
        $count = (int) max(1, min(self::MAX_ROWS, self::FETCH_BYTES / ($rowBytes + 1)));
        $messages = FrontendMessages::execute($this->name, $count) . FrontendMessages::SYNC;
        try {
            $this->pipeline->submit($exchange, [$messages], $cancellation);
        } catch (ConnectionLostException $lost) {
            throw $lost->afterSending();
        }

        return $exchange;
    }
}
