<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Spindle\Postgres\Result;

/**
 * A session for as long as it is borrowed. After {@see end()} it behaves like a closed session. Otherwise a generator
 * or a fiber of the former borrower could go on, or clean up, in the session of the next one.
 */
final class SessionLease implements Session
{
    private bool $isOver = false;

    /** Number of COPY … TO STDOUT generators that are neither read to their end nor destroyed. */
    private int $copying = 0;

    /** Queries without an outcome. Some may not be sent yet, since encoding a value may suspend. */
    private int $querying = 0;

    /** @var (\Closure(): void)|null called once these queries are done */
    private ?\Closure $give = null;

    public function __construct(private readonly Session $session) {}

    /**
     * Ends the lease, and stops a COPY … TO STDOUT, which would wait for its reader.
     *
     * @param \Closure(): void $give called once no query is left that could be sent on the session of the next borrower
     */
    public function end(\Closure $give): void
    {
        $this->isOver = true;
        if ($this->copying > 0) {
            $this->session->stop();
        }
        if ($this->querying === 0) {
            $give();
        } else {
            $this->give = $give;
        }
    }

    public function query(
        string $sql,
        #[\SensitiveParameter]
        array $parameters = [],
        ?Cancellation $cancellation = null,
    ): Result {
        $session = $this->session();
        ++$this->querying;
        try {
            return $session->query($sql, $parameters, $cancellation);
        } finally {
            if (--$this->querying === 0 && $this->give !== null) {
                ($this->give)();
            }
        }
    }

    public function stream(
        string $sql,
        #[\SensitiveParameter]
        array $parameters,
        ?Cancellation $cancellation,
    ): \Generator {
        foreach ($this->session()->stream($sql, $parameters, $cancellation) as $index => $row) {
            yield $index => $row;
            $this->session();
        }
    }

    public function copyFrom(string $sql, #[\SensitiveParameter] iterable $data, ?Cancellation $cancellation): int
    {
        return $this->session()->copyFrom($sql, $data, $cancellation);
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        $session = $this->session();
        ++$this->copying;
        try {
            foreach ($session->copyTo($sql, $cancellation) as $index => $row) {
                yield $index => $row;
                $this->session();
            }
        } finally {
            --$this->copying;
        }
    }

    public function script(string $sql, ?Cancellation $cancellation = null, ?TransactionEnds $ends = null): void
    {
        $this->session()->script($sql, $cancellation, $ends);
    }

    public function supportsPipelining(): bool
    {
        return $this->session->supportsPipelining();
    }

    public function inFlight(): int
    {
        return $this->isOver ? 0 : $this->session->inFlight();
    }

    public function canSend(): bool
    {
        return !$this->isOver && $this->session->canSend();
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $this->session()->begin($sql, $cancellation);
    }

    public function hasBegun(): bool
    {
        return $this->isOver || $this->session->hasBegun();
    }

    public function commandTag(): string
    {
        return $this->session->commandTag();
    }

    public function took(): int
    {
        return $this->session->took();
    }

    public function ping(?Cancellation $cancellation = null): void
    {
        $this->session()->ping($cancellation);
    }

    public function isChanged(): bool
    {
        return !$this->isOver && $this->session->isChanged();
    }

    public function noteChange(): void
    {
        if (!$this->isOver) {
            $this->session->noteChange();
        }
    }

    public function reset(): void
    {
        if (!$this->isOver) {
            $this->session->reset();
        }
    }

    public function settle(?Cancellation $cancellation = null): void
    {
        if (!$this->isOver) {
            $this->session->settle($cancellation);
        }
    }

    public function stop(): void
    {
        if (!$this->isOver) {
            $this->session->stop();
        }
    }

    public function lastActivity(): int
    {
        return $this->session->lastActivity();
    }

    public function isOpen(): bool
    {
        return !$this->isOver && $this->session->isOpen();
    }

    public function isReadOnly(): bool
    {
        return $this->session->isReadOnly();
    }

    public function transactionStatus(): string
    {
        return $this->isOver ? 'I' : $this->session->transactionStatus();
    }

    public function backendPid(): int
    {
        return $this->session()->backendPid();
    }

    public function onNotification(?\Closure $listener): void
    {
        if (!$this->isOver) {
            $this->session->onNotification($listener);
        }
    }

    public function pause(bool $on): void
    {
        if (!$this->isOver) {
            $this->session->pause($on);
        }
    }

    public function onClose(\Closure $callback): void
    {
        $this->session()->onClose($callback);
    }

    public function close(): void
    {
        if (!$this->isOver) {
            $this->session->close();
        }
    }

    private function session(): Session
    {
        return $this->isOver
            ? throw new \LogicException('The connection was released to its pool. Call acquire() for another one')
            : $this->session;
    }
}
