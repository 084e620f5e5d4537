<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Amp\Cancellation;
use Spindle\Postgres\Internal\ServerError;
use Spindle\Postgres\Result;

/** A statement whose rows are fetched as they are taken, in a transaction that is open. */
final readonly class Portal
{
    /** Rows that are fetched at first, then so many as make BYTES, and never more than MOST. */
    private const FIRST_ROWS = 50;
    private const BYTES = 0x4_0000;
    private const MOST_ROWS = 5_000;

    /**
     * @param string                                      $name   of no other portal of the session
     * @param \Closure(Exchange, ServerError): \Throwable $failed makes what is thrown of an error
     * @param (\Closure(Exchange): void)|null             $onSent of the statement
     */
    public function __construct(private Pipeline $pipeline, private string $name, private \Closure $failed, private ?\Closure $onSent = null) {}

    /**
     * @param list<string|null> $values
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function rows(Prepared $statement, string $sql, #[\SensitiveParameter] array $values, ?Cancellation $cancellation): \Generator
    {
        $exchange = $this->send([
            $statement->name === '' ? Frontend::parse('', $sql) : '',
            ...$statement->bind($values, $this->name),
            Frontend::execute($this->name, self::FIRST_ROWS) . Frontend::SYNC,
        ], $cancellation, $this->onSent);
        try {
            for ($index = 0;; $exchange = $next) {
                $next = null;
                $this->pipeline->await($exchange, $cancellation);
                if ($exchange->copy !== '') {
                    throw new \LogicException('A COPY is for copyFrom() or copyTo()');
                }
                if ($exchange->error !== null) {
                    throw ($this->failed)($exchange, $exchange->error);
                }
                // The next ones come while these are taken.
                $next = $exchange->suspended ? $this->fetchMore($exchange, $cancellation) : null;
                $cancellation?->throwIfRequested();
                foreach (new Result($statement->columns, $exchange, $exchange->rows, 0) as $row) {
                    yield $index++ => $row;
                }
                if ($next === null) {
                    return;
                }
            }
        } finally {
            if ($this->pipeline->isOpen()) {
                // Rows that were fetched ahead. To cancel that would fail the transaction.
                $exchange = $next ?? $exchange;
                $exchange->discarded = true;
                $this->pipeline->closing .= Frontend::closePortal($this->name);
            }
        }
    }

    private function fetchMore(#[\SensitiveParameter] Exchange $last, ?Cancellation $cancellation): Exchange
    {
        $size = array_sum(array_map(\strlen(...), $last->chunks)) / max(1, $last->rows);

        return $this->send([Frontend::execute($this->name, (int) max(1, min(self::MOST_ROWS, self::BYTES / ($size + 1)))) . Frontend::SYNC], $cancellation);
    }

    /**
     * @param non-empty-list<string>          $parts
     * @param (\Closure(Exchange): void)|null $onSent
     */
    private function send(#[\SensitiveParameter] array $parts, ?Cancellation $cancellation, ?\Closure $onSent = null): Exchange
    {
        $exchange = new Exchange();
        $exchange->binary = true;
        $exchange->onSent = $onSent;
        $this->pipeline->submit($exchange, $parts, $cancellation);

        return $exchange;
    }
}
