<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Postgres\Result;

/**
 * The session of one connection: lent to one at a time, and shared by all while nobody has it alone. Statements may take several steps, so
 * nobody gets it alone while one is under way: it would be caught in his transaction.
 */
final class OnlySession implements Lender
{
    /** Seconds for another fiber after which something may be wrong. */
    private const LONG = 10;

    private readonly Turn $turn;

    private readonly int $process;

    /** Statements of sharers that are under way. */
    private int $sharing = 0;

    /** Whether nobody is to use it any more. */
    private bool $isOver = false;

    /** Of a transaction, whether the server was in it. */
    private bool $isBegun = false;

    /** Whether a statement ended it, also where another has begun since. */
    public bool $isEnded = false;

    /** Who has the turn, and waits for the end of these. */
    private readonly WaitingLine $waiting;

    /** @param bool $isTransaction whether it is lent for a transaction, whose end is the affair of who began it */
    public function __construct(public readonly Session $session, private readonly bool $isTransaction = false)
    {
        $this->turn = new Turn('The connection is busy with a transaction, a stream or a COPY. Use that transaction, read to the end first, or take a pool');
        $this->waiting = new WaitingLine();
        $this->process = (int) getmypid();
    }

    public function isOurs(): bool
    {
        return $this->process === getmypid();
    }

    /** @param list<mixed> $parameters */
    public function query(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): Result
    {
        $this->share($cancellation);
        try {
            $this->ensureEndsNothing($sql);

            return $this->session->query($sql, $parameters, $cancellation);
        } finally {
            $this->shared();
            $this->watch();
        }
    }

    public function script(string $sql, ?Cancellation $cancellation): void
    {
        $this->share($cancellation);
        $ends = $this->isTransaction ? new TransactionEnds() : null;
        try {
            $this->session->script($sql, $cancellation, $ends);
        } finally {
            $this->shared();
            $this->watch();
            $this->isEnded = $this->isEnded || $ends !== null && $ends->haveEnded($sql);
        }
        $this->ensureNotEnded();
    }

    /** @param iterable<string|array<array-key, mixed>> $data */
    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        $this->take($cancellation);
        try {
            return $this->session->copyFrom($sql, $data, $cancellation);
        } finally {
            $this->give($this->session);
        }
    }

    /** @return \Generator<int, string> */
    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $this->take($cancellation);
        try {
            yield from $this->session->copyTo($sql, $cancellation);
        } finally {
            $this->give($this->session);
        }
    }

    /**
     * The rows of a statement in the transaction that is open.
     *
     * @param list<mixed> $parameters
     *
     * @return \Generator<int, array<string, mixed>>
     */
    public function stream(string $sql, #[\SensitiveParameter] array $parameters, ?Cancellation $cancellation): \Generator
    {
        $this->share($cancellation);
        $this->shared();
        $this->ensureEndsNothing($sql);
        try {
            foreach ($this->session->stream($sql, $parameters, $cancellation) as $index => $row) {
                yield $index => $row;
                $this->ensureNotOver();
            }
        } finally {
            $this->watch();
        }
    }

    public function take(?Cancellation $cancellation): Session
    {
        $this->takeTurn($cancellation, $this->ensureNotOver(...));

        return $this->session;
    }

    public function handOver(Session $session): void
    {
        $this->turn->handOver();
    }

    public function give(Session $session): void
    {
        $this->turn->give();
    }

    /**
     * Suspends until all that was called before is done. Nobody gets it any more.
     *
     * @throws \LogicException when the fiber itself has it: it has a COPY open, which is stopped
     */
    public function finish(): void
    {
        if ($this->isOver) {
            return;
        }
        try {
            $this->takeTurn(null, static fn() => null);
        } catch (\LogicException) {
            $this->session->stop();
            throw new \LogicException('A COPY of the transaction was neither read to its end nor left');
        } finally {
            $this->end();
            // For those who have come since.
            $this->turn->give();
        }
    }

    /** @throws \LogicException when a statement ended the transaction */
    public function ensureNotEnded(): void
    {
        if ($this->isEnded) {
            throw self::ended();
        }
    }

    public static function ended(): \LogicException
    {
        return new \LogicException('The transaction was ended by a statement in it; leave that to the function: it returns for a COMMIT, and throws for a ROLLBACK');
    }

    /** Nobody gets it any more, also of those who wait. */
    public function end(): void
    {
        $this->isOver = true;
    }

    /** @param \Closure(): void $ensure throws when it is of no use */
    private function takeTurn(?Cancellation $cancellation, \Closure $ensure): void
    {
        $this->ensureOurs();
        $this->turn->take($cancellation);
        try {
            while ($this->sharing > 0) {
                $this->waiting->wait($cancellation, static function (): void {});
            }
            $ensure();
        } catch (\Throwable $interruption) {
            $this->turn->give();
            throw $interruption;
        }
    }

    /** One more statement, when nobody has the session alone. */
    private function share(?Cancellation $cancellation): void
    {
        $this->ensureOurs();
        if ($this->turn->taken) {
            $warning = EventLoop::unreference(EventLoop::delay(self::LONG, $this->warn(...)));
            try {
                // Whoever gets it next waits for this one.
                $this->turn->take($cancellation);
                $this->turn->give();
            } finally {
                EventLoop::cancel($warning);
            }
        }
        $this->ensureNotOver();
        ++$this->sharing;
    }

    /** That others wait for the one that waits here can't be seen from here. */
    private function warn(): void
    {
        error_log(\sprintf(
            'Spindle: a statement of a fiber has waited for %d s for a %s of another fiber on the same connection. Should that one wait for this fiber, both wait for ever',
            self::LONG,
            $this->isTransaction ? 'nested transaction or a COPY' : 'transaction, a stream or a COPY',
        ));
    }

    private function shared(): void
    {
        if (--$this->sharing === 0) {
            $this->waiting->wakeAll();
        }
    }

    private function ensureEndsNothing(string $sql): void
    {
        if ($this->isTransaction && SessionChanges::chains($sql)) {
            $this->isEnded = true;
            throw self::ended();
        }
    }

    /** What is sent behind the end of a transaction would be none of it. */
    private function watch(): void
    {
        if (!$this->isTransaction) {
            return;
        }
        if ($this->session->transactionStatus() !== 'I') {
            $this->isBegun = true;
        } elseif ($this->isBegun && $this->session->isOpen()) {
            $this->isEnded = true;
        }
    }

    private function ensureNotOver(): void
    {
        $this->ensureNotEnded();
        if ($this->isOver) {
            throw new \LogicException('The transaction is over: use what it gave after the function that got it returned');
        }
    }

    private function ensureOurs(): void
    {
        if (!$this->isOurs()) {
            throw new \LogicException('A connection to PostgreSQL can not be used in a fork of the process that opened it; open another');
        }
    }
}
