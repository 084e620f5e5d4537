<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Internal\OwnLoop;
use Spindle\Postgres\ConnectionClosedException;

/** Closes the session if a wait, for example for an answer to COMMIT, continues for SECONDS after a cancellation. */
final class CancellationLimit
{
    /** Maximum seconds of the wait after a cancellation. {@see TransactionRun} also limits rollbacks to this time. */
    public const SECONDS = 5;

    private bool $isOver = false;

    private bool $isExceeded = false;

    private ?OwnLoop $loop = null;
    private ?string $timer = null;

    private function __construct(private readonly Session $session) {}

    /**
     * @template T
     *
     * @param \Closure(): T $wait waits for answers of the session
     *
     * @return T
     *
     * @throws CancelledException when the limit has ended the wait
     */
    public static function during(Session $session, ?Cancellation $cancellation, \Closure $wait): mixed
    {
        if ($cancellation === null) {
            return $wait();
        }
        $limit = new self($session);
        $id = $cancellation->subscribe($limit->start(...));
        try {
            return $wait();
        } catch (ConnectionClosedException $closed) {
            if ($limit->isExceeded) {
                $cancellation->throwIfRequested();
            }
            throw $closed;
        } finally {
            $limit->isOver = true;
            $cancellation->unsubscribe($id);
            $limit->loop?->cancel($limit->timer);
        }
    }

    private function start(): void
    {
        if (!$this->isOver) {
            $this->loop = new OwnLoop();
            $this->timer = EventLoop::delay(self::SECONDS, function (): void {
                $this->isExceeded = true;
                $this->session->close();
            });
        }
    }
}
