<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\FiberQueue;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\Internal\FairMutex;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\TransactionEndDetector;
use Spindle\Postgres\Result;

/** A session without a server. It answers each statement immediately, until it falls silent. */
final class ScriptedSession implements Session
{
    /** @var list<string> statements, and calls of stop() and close() */
    public array $calls = [];

    private int $inFlight = 0;

    private string $status = 'I';

    private string $tag = '';

    private bool $isBeginUnsent = false;

    private bool $isSilent = false;

    private ?ConnectionClosedException $closed = null;

    private string $fetch = '';

    private readonly FiberQueue $waiting;

    /**
     * @param string $unanswered the session answers neither this statement nor later ones; '' for none
     * @param float $fetchSeconds time until rows arrive that are being fetched when a stream is left
     */
    public function __construct(private readonly string $unanswered = '', private readonly float $fetchSeconds = 0)
    {
        $this->waiting = new FiberQueue();
    }

    public function query(string $sql, array $parameters = [], ?Cancellation $cancellation = null): Result
    {
        $this->send($sql);
        $this->isSilent = $this->isSilent || $sql === $this->unanswered;
        if ($this->isSilent) {
            ++$this->inFlight;
            $this->settle($cancellation);
            throw $this->closed ?? new \LogicException('A silent session has answered');
        }
        $this->tag = $sql;
        $this->status = \in_array($sql, ['COMMIT', 'ROLLBACK'], true) ? 'I' : $this->status;

        return new Result(null, null, 0);
    }

    public function stream(string $sql, array $parameters, ?Cancellation $cancellation): \Generator
    {
        $this->send($sql);
        try {
            yield ['row' => 1];
            yield ['row' => 2];
        } finally {
            ++$this->inFlight;
            $this->fetch = EventLoop::delay($this->fetchSeconds, $this->answer(...));
        }
    }

    public function copyFrom(string $sql, iterable $data, ?Cancellation $cancellation): int
    {
        throw new \LogicException('Not scripted');
    }

    public function copyTo(string $sql, ?Cancellation $cancellation): \Generator
    {
        throw new \LogicException('Not scripted');
    }

    public function script(
        string $sql,
        ?Cancellation $cancellation = null,
        ?TransactionEndDetector $endDetector = null,
    ): void {
        throw new \LogicException('Not scripted');
    }

    public function inFlight(): int
    {
        return $this->inFlight;
    }

    public function begin(string $sql, ?Cancellation $cancellation): void
    {
        $this->isBeginUnsent = true;
    }

    public function discardUnsentBegin(): bool
    {
        [$isUnsent, $this->isBeginUnsent] = [$this->isBeginUnsent, false];

        return $isUnsent;
    }

    public function endWaitsFor(FairMutex $mutex): void {}

    public function commandTag(): string
    {
        return $this->tag;
    }

    public function settle(?Cancellation $cancellation = null): void
    {
        while ($this->inFlight > 0 && $this->closed === null) {
            $this->waiting->wait($cancellation);
        }
    }

    public function stop(): void
    {
        $this->calls[] = 'stop';
        if (!$this->isSilent && $this->inFlight > 0) {
            EventLoop::queue(function (): void {
                $this->status = $this->closed === null ? 'E' : $this->status;
                $this->answer();
            });
        }
    }

    public function isOpen(): bool
    {
        return $this->closed === null;
    }

    public function transactionStatus(): string
    {
        return $this->status;
    }

    public function backendPid(): int
    {
        return 4711;
    }

    public function close(?ConnectionClosedException $reason = null): void
    {
        if ($this->closed === null) {
            $this->calls[] = 'close';
            $this->closed = $reason ?? ConnectionClosedException::connection();
            $this->answer();
        }
    }

    private function send(string $sql): void
    {
        if ($this->closed !== null) {
            throw $this->closed;
        }
        $this->calls[] = $sql;
        if ($this->isBeginUnsent) {
            $this->isBeginUnsent = false;
            $this->status = 'T';
        }
    }

    private function answer(): void
    {
        EventLoop::cancel($this->fetch);
        $this->inFlight = 0;
        $this->waiting->wakeAll();
    }
}
