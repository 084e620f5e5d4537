<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

use Amp\DeferredFuture;
use Revolt\EventLoop;
use Spindle\Internal\Backoff;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\Internal\ReconnectBackoff;
use Spindle\Remote\MailboxMessage;

/** Receives the messages of one publish/subscribe channel of Redis or Valkey. Reconnects until {@see close()}. */
final class Mailbox
{
    /** Seconds between two PING commands, which detect a broken connection. */
    private const PING_INTERVAL = 5.0;

    /** Seconds between attempts to open a refused mailbox. A request to the engine starts an attempt immediately. */
    private const REFUSED_PAUSE_SECONDS = 30.0;

    private ?RedisConnection $connection = null;
    private bool $isClosed = false;

    /** Number of failed attempts and broken connections since the mailbox was last open. Refusals do not count. */
    private int $failureCount = 0;

    private string $retryTimer = '';

    private readonly int $ownerPid;
    private readonly OwnLoop $loop;
    private readonly Backoff $backoff;
    private readonly string $pingTimer;

    /** @var DeferredFuture<null>|null completed when an attempt to open the mailbox ends; null between attempts */
    private ?DeferredFuture $attempt = null;

    private bool $isFirstAttempt = true;

    /** Exception of the last attempt to open the mailbox; null if the engine did not refuse that attempt. */
    private ?BrokerRefusedException $refusal = null;

    /**
     * @param \Closure(MailboxMessage): void $onMessage
     * @param \Closure(bool): void           $onOpen    as in {@see \Spindle\Remote\Broker::openMailbox()}
     */
    public function __construct(
        private readonly EngineClient $engine,
        private readonly string $name,
        private readonly \Closure $onMessage,
        private readonly \Closure $onOpen,
    ) {
        $this->ownerPid = (int) getmypid();
        $this->loop = new OwnLoop();
        $this->backoff = ReconnectBackoff::backoff();
        $this->engine->addUnopenedMailbox($this);
        $this->pingTimer = EventLoop::unreference(EventLoop::repeat(self::PING_INTERVAL, $this->ping(...)));
        $this->beginAttempt();
    }

    /**
     * Waits for the current attempt to open the mailbox. If the last attempt was refused, starts another attempt first.
     * {@see EngineClient::run()} calls this method first, because outcomes of jobs arrive through the mailbox.
     *
     * @throws BrokerRefusedException when the engine refuses the mailbox
     */
    public function ensureNotRefused(): void
    {
        if ($this->refusal !== null) {
            $this->beginAttempt();
        }
        $this->attempt?->getFuture()->await();
        if ($this->refusal !== null) {
            throw $this->refusal;
        }
    }

    public function close(): void
    {
        $this->isClosed = true;
        $this->attemptEnded(null);
        $this->loop->cancel($this->pingTimer);
        $this->loop->cancel($this->retryTimer);
        $connection = $this->connection;
        $this->connection = null;
        $connection?->close('the mailbox was closed');
    }

    private function beginAttempt(): void
    {
        if ($this->attempt === null) {
            EventLoop::cancel($this->retryTimer);
            $this->attempt = new DeferredFuture();
            EventLoop::queue($this->subscribe(...));
        }
    }

    private function subscribe(): void
    {
        if ($this->isClosed || $this->ownerPid !== getmypid()) {
            return; // in a fork, the mailbox belongs to the parent process
        }
        try {
            $connection = $this->engine->open();
            $connection->call('SUBSCRIBE', ["spindle:to:{$this->name}"]);
        } catch (BrokerException|EngineError $failure) {
            if (!$this->isClosed()) {
                $refusal = $failure instanceof BrokerRefusedException ? $failure : null;
                // Only a refusal must make later requests fail. If the engine is not available, requests fail anyway.
                $this->attemptEnded($refusal);
                $this->retryIn($refusal === null
                    ? $this->backoff->after(++$this->failureCount)
                    : self::REFUSED_PAUSE_SECONDS);
            }

            return;
        }
        if ($this->isClosed()) { // close() was called during the attempt
            $connection->close('the mailbox was closed');

            return;
        }
        $this->connection = $connection;
        $this->failureCount = 0;
        // During the first attempt, ensureNotRefused() delays all requests. So the engine can't have sent a message
        // before the attempt succeeds, and none is lost.
        $mayHaveLostMessages = !$this->isFirstAttempt;
        $this->attemptEnded(null);
        $connection->listen($this->onData(...));
        ($this->onOpen)($mayHaveLostMessages);
    }

    /** Reads the flag in a method, because static analysis expects no change of a property while a fiber waits. */
    private function isClosed(): bool
    {
        return $this->isClosed;
    }

    private function onData(mixed $message): void
    {
        if (\is_array($message) && ($message[0] ?? null) === 'message' && \is_string($message[2] ?? null)) {
            try {
                $parsed = Codec::decodeMessage($message[2]);
            } catch (MalformedAnswerException) {
                return; // the message is not from Spindle
            }
            if ($parsed !== null) {
                ($this->onMessage)($parsed);
            }
        } elseif ($message === null && $this->connection !== null) {
            $this->connection = null;
            $this->retryIn($this->backoff->after(++$this->failureCount));
        }
    }

    private function attemptEnded(?BrokerRefusedException $refused): void
    {
        $this->refusal = $refused;
        $refused === null ? $this->engine->removeUnopenedMailbox($this) : $this->engine->addUnopenedMailbox($this);
        $this->isFirstAttempt = false;
        $attempt = $this->attempt;
        $this->attempt = null;
        $attempt?->complete();
    }

    private function retryIn(float $seconds): void
    {
        $this->retryTimer = WeakTimer::after($seconds, $this, static fn(self $mailbox) => $mailbox->beginAttempt());
    }

    private function ping(): void
    {
        if ($this->ownerPid !== getmypid()) {
            EventLoop::cancel($this->pingTimer);

            return;
        }
        try {
            $this->connection?->call('PING', []);
        } catch (BrokerException|EngineError) {
            // If PING gets no answer, the connection is closed. Then onData() schedules the next attempt.
        }
    }
}
