<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

use Revolt\EventLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionLostException;

use function Amp\async;

/**
 * Has the server stop what it works at, by a cancel request over a connection of its own.
 *
 * Until the server has closed that connection the request may be under way, so nothing new is sent; nor is it while an exchange is in flight that
 * has yet to be stopped. Should a request have stopped an exchange that was sent before and is somebody else's, that one is marked as struck.
 * The server may not have begun with what it is to stop when the request comes, and then takes no notice: so it is asked again.
 */
final class Cancelling
{
    /** Seconds between requests to stop a statement after which it is not asked again, and the connection is given up. */
    private const STOPS_WITHIN = 10.0;

    /** Seconds after a request within which a statement that it stopped is told to have been stopped. */
    private const STRIKES_WITHIN = 0.1;

    /** Seconds until the first repetition, doubled with each. */
    private const FLEETING = 0.005;

    /** Whether a request is under way; only read by others. */
    public bool $underWay = false;

    /** Whether one is, or something in flight is to be stopped, so that nothing new is sent; only read by others. */
    public bool $unsettled = false;

    private ?string $timer = null;

    private ?string $striking = null;

    /**
     * @param \Closure(): void                             $request sends one, and returns when the server has closed that connection
     * @param \Closure(ConnectionLostException|null): void $over    called after each, with a reason where the connection is to be given up
     */
    public function __construct(private readonly Conversation $conversation, private readonly \Closure $request, private readonly \Closure $over) {}

    /** Something in flight is to be stopped: now, if it is the current exchange. */
    public function stop(#[\SensitiveParameter] Exchange $exchange): void
    {
        $this->unsettled = true;
        if ($this->conversation->current() === $exchange) {
            $this->request();
        }
    }

    /** @return bool whether something new may be sent by now */
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
     * @param bool $isNeeded whether the connection is to be given up where that fails
     */
    public function request(float $again = self::FLEETING, bool $isNeeded = true): void
    {
        if ($this->underWay) {
            return;
        }
        $this->underWay = $this->unsettled = true;
        $this->conversation->suspect();
        async($this->send(...), $again, $isNeeded)->ignore();
    }

    /** The same in a moment, unless the exchange is done by then. */
    public function requestLater(#[\SensitiveParameter] Exchange $exchange, float $seconds = self::FLEETING): void
    {
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
        }
        $this->timer = WeakTimer::after($seconds, $this, static function (self $self) use ($exchange, $seconds): void {
            $self->timer = null;
            if ($self->conversation->current() !== $exchange) {
                return;
            }
            if ($seconds > self::STOPS_WITHIN) {
                ($self->over)(ConnectionLostException::while('the server did not stop a statement that was cancelled'));
            } else {
                $self->request($seconds * 2);
            }
        });
    }

    public function forget(): void
    {
        foreach (array_filter([$this->timer, $this->striking], is_string(...)) as $timer) {
            EventLoop::cancel($timer);
        }
        $this->timer = $this->striking = null;
    }

    private function send(float $again, bool $isNeeded): void
    {
        $failure = null;
        try {
            ($this->request)();
        } catch (\Throwable $reason) {
            $failure = ConnectionLostException::while('a statement that was cancelled could not be stopped otherwise', $reason);
        }
        $this->underWay = false;
        if (!$isNeeded && array_filter($this->conversation->exchanges, static fn(Exchange $exchange): bool => $exchange->cancelled) === []) {
            $failure = null;
        }
        $current = $this->conversation->current();
        if ($failure === null && $current !== null) {
            if ($current->cancelled) {
                $this->requestLater($current, $again);
            }
            $this->acquitLater();
        }
        ($this->over)($failure);
    }

    private function acquitLater(): void
    {
        if ($this->striking !== null) {
            EventLoop::cancel($this->striking);
        }
        $this->striking = WeakTimer::after(self::STRIKES_WITHIN, $this, static function (self $self): void {
            $self->striking = null;
            if (!$self->underWay) {
                $self->conversation->striking = false;
                $self->conversation->acquit();
            }
        });
    }
}
