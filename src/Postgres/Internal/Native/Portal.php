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
        $next = null;
        try {
            for ($index = 0; $exchange !== null; [$exchange, $next] = [$next, null]) {
                do {
                    if ($exchange->chunks === []) {
                        $this->pipeline->await($exchange, $cancellation);
                    }
                    // The next ones come while these are taken.
                    $next ??= $this->fetchMore($exchange, $cancellation);
                    $cancellation?->throwIfRequested();
                    $rows = $exchange->take();
                    $this->pipeline->pause(false);
                    foreach (new Result($statement->columns, $rows, $rows->rows, 0) as $row) {
                        yield $index++ => $row;
                    }
                } while ($exchange->chunks !== [] || !$exchange->done);
                $this->ensureComplete($exchange);
                $next ??= $this->fetchMore($exchange, $cancellation);
            }
        } finally {
            if ($this->pipeline->isOpen()) {
                // Rows that were fetched ahead. To cancel that would fail the transaction.
                $ahead = $next ?? $exchange;
                if ($ahead !== null) {
                    $ahead->discarded = true;
                    $this->pipeline->pause(false);
                }
                $this->pipeline->closing .= Frontend::closePortal($this->name);
            }
        }
    }

    private function ensureComplete(#[\SensitiveParameter] Exchange $exchange): void
    {
        if ($exchange->copy !== '') {
            throw new \LogicException('A COPY is for copyFrom() or copyTo()');
        }
        if ($exchange->refusal !== null) {
            throw $exchange->refusal;
        }
        if ($exchange->error !== null) {
            throw ($this->failed)($exchange, $exchange->error);
        }
    }

    /** @return Exchange|null null when there are no more, or it is not known yet */
    private function fetchMore(#[\SensitiveParameter] Exchange $last, ?Cancellation $cancellation): ?Exchange
    {
        if (!$last->done || !$last->suspended || $last->refusal !== null) {
            return null;
        }
        $rows = self::BYTES / ($last->size / max(1, $last->rows) + 1);

        return $this->send([Frontend::execute($this->name, (int) max(1, min(self::MOST_ROWS, $rows))) . Frontend::SYNC], $cancellation);
    }

    /**
     * @param non-empty-list<string>          $parts
     * @param (\Closure(Exchange): void)|null $onSent
     */
    private function send(#[\SensitiveParameter] array $parts, ?Cancellation $cancellation, ?\Closure $onSent = null): Exchange
    {
        $exchange = new Exchange();
        $exchange->binary = $exchange->flows = true;
        $exchange->onSent = $onSent;
        $this->pipeline->submit($exchange, $parts, $cancellation);

        return $exchange;
    }
}
