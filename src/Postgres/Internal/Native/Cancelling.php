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
 * Until the server has closed that connection the request may be under way, so nothing new is sent. Should it have stopped an exchange that was
 * sent before and is somebody else's, that one is marked as struck. The server may not have begun with what it is to stop when the request
 * comes, and then takes no notice: so it is asked again.
 */
final class Cancelling
{
    /** Seconds between requests to stop a statement after which it is not asked again, and the connection is given up. */
    private const STOPS_WITHIN = 10.0;

    /** Seconds until the first repetition, doubled with each. */
    private const FLEETING = 0.005;

    /** Whether a request is under way; only read by others. */
    public bool $underWay = false;

    private ?string $timer = null;

    /**
     * @param \Closure(): void                             $request sends one, and returns when the server has closed that connection
     * @param \Closure(ConnectionLostException|null): void $over    called after each, with a reason where the connection is to be given up
     */
    public function __construct(private readonly Conversation $conversation, private readonly \Closure $request, private readonly \Closure $over) {}

    /** Asks the server to stop the current exchange. */
    public function request(float $again = self::FLEETING): void
    {
        if ($this->underWay) {
            return;
        }
        $this->underWay = true;
        foreach ($this->conversation->exchanges as $exchange) {
            $exchange->suspect = true;
        }
        async($this->send(...), $again)->ignore();
    }

    /** The same in a moment, unless the exchange is done by then. */
    public function requestLater(Exchange $exchange, float $seconds = self::FLEETING): void
    {
        $this->forget();
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
        if ($this->timer !== null) {
            EventLoop::cancel($this->timer);
            $this->timer = null;
        }
    }

    private function send(float $again): void
    {
        $failure = null;
        try {
            ($this->request)();
        } catch (\Throwable $reason) {
            $failure = ConnectionLostException::while('a statement that was cancelled could not be stopped otherwise', $reason);
        }
        $this->underWay = false;
        $current = $this->conversation->current();
        if ($failure === null && $current?->cancelled === true) {
            $this->requestLater($current, $again);
        }
        ($this->over)($failure);
    }
}
