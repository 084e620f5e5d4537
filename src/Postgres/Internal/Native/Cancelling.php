<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionLostException;

use function Amp\async;

/**
 * Stops the current statement of the server by a cancel request, which has a connection of its own.
 *
 * A request may take effect until the server has closed that connection. Nothing new is sent until then, nor while an
 * exchange in flight has yet to be stopped. A request may also stop an earlier exchange of another caller; that one is
 * marked as struck. The server ignores a request that arrives before it has started the statement, so the request is
 * repeated.
 */
final class Cancelling
{
    /** Longest pause in seconds between two requests for a statement; after it, the connection is given up. */
    private const MAX_PAUSE_SECONDS = 10.0;

    /** Seconds after a request in which a statement that it stopped may still report that. */
    private const REQUEST_EFFECT_SECONDS = 0.1;

    /** Seconds until the first repetition; doubled with each one. */
    private const FIRST_PAUSE_SECONDS = 0.005;

    /** Whether a request is under way. Only this class writes it. */
    public bool $underWay = false;

    /** Whether nothing new is sent: a request is under way or an exchange is to be stopped. Read-only for others. */
    public bool $unsettled = false;

    private ?string $timer = null;

    private ?string $recentTimer = null;

    /**
     * @param \Closure(): void                             $request sends a request; returns when it is closed
     * @param \Closure(ConnectionLostException|null): void $onDone    called after each; a reason closes the connection
     */
    public function __construct(
        private readonly Conversation $conversation,
        private readonly \Closure $request,
        private readonly \Closure $onDone,
    ) {}

    /** Stops an exchange in flight: at once if it is the current one, otherwise when it becomes that. */
    public function stop(#[\SensitiveParameter] Exchange $exchange): void
    {
        $this->unsettled = true;
        if ($this->conversation->current() === $exchange) {
            $this->request();
        }
    }

    /** @return bool whether new exchanges may be sent */
    public function settles(): bool
    {
        if ($this->underWay) {
            return false;
        }
        foreach ($this->conversation->exchanges as $exchange) {
            if ($exchange->cancelled) {
                return false;
            }
        }
        $this->unsettled = false;

        return true;
    }

    /**
     * Asks the server to stop the current exchange.
     *
     * @param bool $isNeeded whether the connection is given up if the request fails
     */
    public function request(float $pause = self::FIRST_PAUSE_SECONDS, bool $isNeeded = true): void
    {
        if ($this->underWay) {
            return;
        }
        $this->underWay = $this->unsettled = true;
        $this->conversation->markSuspects();
        async($this->send(...), $pause, $isNeeded)->ignore();
    }

    /** Repeats the request after `$seconds`, unless the exchange is done by then. */
    public function requestLater(
        #[\SensitiveParameter]
        Exchange $exchange,
        float $seconds = self::FIRST_PAUSE_SECONDS,
    ): void {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
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

    public function cancelTimers(): void
    {
        foreach (array_filter([$this->timer, $this->recentTimer], is_string(...)) as $timer) {
            EventLoop::cancel($timer);
        }
        $this->timer = $this->recentTimer = null;
    }

    private function send(float $pause, bool $isNeeded): void
    {
        $failure = null;
        try {
            ($this->request)();
        } catch (\Throwable $reason) {
            $failure = ConnectionLostException::while(
                'a cancelled statement could not be stopped otherwise',
                $reason,
            );
        }
        $this->underWay = false;
        if (
            !$isNeeded
            && array_filter(
                $this->conversation->exchanges,
                static fn(Exchange $exchange): bool => $exchange->cancelled,
            ) === []
        ) {
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
        if ($this->recentTimer !== null) {
            EventLoop::cancel($this->recentTimer);
        }
        $this->recentTimer = WeakTimer::after(self::REQUEST_EFFECT_SECONDS, $this, static function (self $self): void {
            $self->recentTimer = null;
            if (!$self->underWay) {
                $self->conversation->isRequestRecent = false;
                $self->conversation->clearSuspects();
            }
        });
    }
}
