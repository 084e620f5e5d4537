<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\LoopCallback;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionLostException;

use function Amp\async;

/**
 * Sends cancel requests over separate connections, to stop the statement that the server is executing.
 *
 * "Request" means cancel request in this class. A request may take effect at any time until the server has closed the
 * separate connection. Until then, and while a cancelled exchange is in flight, no new exchange is sent. The server
 * ignores a request that arrives while the session executes nothing. So a request is repeated until the cancelled
 * exchange is answered.
 *
 * A request may also stop an exchange of another caller by mistake: {@see Exchange::$isStoppedByMistake}.
 */
final class Cancelling
{
    /** Longest pause in seconds before a request is repeated. After a longer pause, the connection ends instead. */
    private const MAX_PAUSE_SECONDS = 10.0;

    /** Seconds after the end of a request during which the error of a stopped statement may still arrive. */
    private const REQUEST_EFFECT_SECONDS = 0.1;

    /** Seconds from the end of the first request to the second. Each pause is twice as long as the previous pause. */
    private const FIRST_PAUSE_SECONDS = 0.005;

    /** Whether a request was started and has not ended. Only this class writes the property. */
    public bool $isRequesting = false;

    /** Whether any request was started. Only this class writes the property. */
    public bool $hasRequested = false;

    /** Whether a request was sent, but not confirmed, so that it may still arrive and stop a later statement. */
    public bool $mayArriveLate = false;

    /** Whether no new exchange may be sent. Only this class writes the property. */
    public bool $blocksSending = false;

    private ?string $timer = null;

    private ?string $suspectTimer = null;

    /**
     * @param \Closure(bool&): void $sendRequest sends a request; returns when the server has closed the separate
     *     connection. Sets the reference to true if the request may arrive although the closure throws
     * @param \Closure(ConnectionLostException|null): void $onDone called with null after a request; called with
     *     an exception when the session's connection must be closed
     */
    public function __construct(
        private readonly Conversation $conversation,
        private readonly \Closure $sendRequest,
        private readonly \Closure $onDone,
    ) {}

    /**
     * Stops an exchange in flight. If an earlier exchange is not answered yet, a request would stop that exchange. In
     * that case, this method only blocks sending: call {@see requestLater()} when all earlier exchanges are answered.
     */
    public function stop(#[\SensitiveParameter] Exchange $exchange): void
    {
        $this->blocksSending = true;
        if ($this->conversation->current() === $exchange) {
            $this->request();
        }
    }

    /** Allows sending, and returns true, if no request is in progress and no cancelled exchange is in flight. */
    public function tryUnblock(): bool
    {
        if ($this->isRequesting) {
            return false;
        }
        foreach ($this->conversation->exchanges as $exchange) {
            if ($exchange->cancelled) {
                return false;
            }
        }
        $this->blocksSending = false;

        return true;
    }

    /**
     * Asks the server to stop the current exchange. Does nothing while another request is in progress.
     *
     * @param float $pause seconds from the end of the request until it is repeated
     * @param bool $closesOnFailure whether a failed request closes the connection even if no exchange is cancelled
     */
    public function request(float $pause = self::FIRST_PAUSE_SECONDS, bool $closesOnFailure = true): void
    {
        if ($this->isRequesting) {
            return;
        }
        $this->isRequesting = $this->hasRequested = $this->blocksSending = true;
        $this->conversation->markSuspects();
        async($this->send(...), $pause, $closesOnFailure)->ignore();
    }

    /**
     * Schedules a request for the current exchange. The request is sent after `$seconds`, unless the exchange was
     * answered. If `$seconds` exceeds MAX_PAUSE_SECONDS, the connection ends instead.
     */
    public function requestLater(
        #[\SensitiveParameter]
        Exchange $exchange,
        float $seconds = self::FIRST_PAUSE_SECONDS,
    ): void {
        LoopCallback::cancel($this->timer);
        $this->timer = WeakTimer::after($seconds, $this, static function (self $self) use ($exchange, $seconds): void {
            $self->timer = null;
            if ($self->conversation->current() !== $exchange) {
                return;
            }
            if ($seconds > self::MAX_PAUSE_SECONDS) {
                ($self->onDone)(ConnectionLostException::while('the server did not stop a cancelled statement'));
            } else {
                $self->request($seconds * 2);
            }
        });
    }

    public function cancelTimers(OwnLoop $loop): void
    {
        $loop->cancel($this->timer);
        $loop->cancel($this->suspectTimer);
        $this->timer = $this->suspectTimer = null;
    }

    private function send(float $pause, bool $closesOnFailure): void
    {
        [$failure, $mayArrive] = [null, false];
        try {
            ($this->sendRequest)($mayArrive);
        } catch (\Throwable $reason) {
            $failure = ConnectionLostException::while(
                'the request to stop a cancelled statement failed, so the client closed the connection',
                $reason,
            );
        }
        $this->isRequesting = false;
        if (
            !$closesOnFailure
            && array_filter(
                $this->conversation->exchanges,
                static fn(Exchange $exchange): bool => $exchange->cancelled,
            ) === []
        ) {
            $this->mayArriveLate = $this->mayArriveLate || $failure !== null && $mayArrive === true;
            $failure = null;
        }
        $current = $this->conversation->current();
        if ($failure === null && $current !== null) {
            if ($current->cancelled) {
                $this->requestLater($current, $pause);
            }
            $this->clearSuspectsLater();
        }
        ($this->onDone)($failure);
    }

    private function clearSuspectsLater(): void
    {
        LoopCallback::cancel($this->suspectTimer);
        $this->suspectTimer = WeakTimer::after(self::REQUEST_EFFECT_SECONDS, $this, static function (self $self): void {
            $self->suspectTimer = null;
            if (!$self->isRequesting) {
                $self->conversation->isRequestRecent = false;
                $self->conversation->clearSuspects();
            }
        });
    }
}
