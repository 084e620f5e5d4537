<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;

/**
 * Waits for the answer to a COMMIT. The wait has no limit of its own, because synchronous replication or deferred
 * constraints may rightly need long. A warning reports a long wait. A cancellation limits it, by closing the session.
 */
final class PendingCommit
{
    /** Seconds without an answer until the warning. */
    private const WARN_AFTER_SECONDS = 60;

    /** Seconds that the server has for its answer after a cancellation. */
    private const CANCELLATION_TIMEOUT = 5;

    private bool $isDone = false;

    private bool $isGivenUp = false;

    /** @var list<string> */
    private array $timers = [];

    /** @param \Closure(string): void $warn */
    private function __construct(private readonly Session $session, private readonly \Closure $warn)
    {
        $this->timers[] = EventLoop::unreference(EventLoop::delay(self::WARN_AFTER_SECONDS, $this->warn(...)));
    }

    /**
     * Sends a COMMIT and suspends until it is answered.
     *
     * @param \Closure(string): void $warn
     *
     * @throws ConnectionLostException|ConnectionClosedException
     */
    public static function await(Session $session, \Closure $warn, ?Cancellation $cancellation): void
    {
        $commit = new self($session, $warn);
        $id = $cancellation?->subscribe($commit->limit(...)) ?? '';
        try {
            $session->query('COMMIT');
        } catch (ConnectionClosedException $closed) {
            throw !$commit->isGivenUp ? $closed : ConnectionLostException::while(
                \sprintf(
                    'the transaction was cancelled, and the server did not answer its COMMIT within %d s',
                    self::CANCELLATION_TIMEOUT,
                ),
                $closed,
            );
        } finally {
            $commit->isDone = true;
            $cancellation?->unsubscribe($id);
            array_map(EventLoop::cancel(...), $commit->timers);
        }
    }

    private function warn(): void
    {
        if ($this->session->isOpen()) {
            ($this->warn)(\sprintf(
                'A COMMIT has waited for %d s for the answer of the server process %d. That process may be stopped, or '
                    . 'it waits for synchronous replication or deferred constraints. The option readTimeout and a '
                    . 'cancellation limit this wait.',
                self::WARN_AFTER_SECONDS,
                $this->session->backendPid(),
            ));
        }
    }

    /** Starts the time limit. A cancellation may call this after the answer has arrived. */
    private function limit(): void
    {
        if (!$this->isDone) {
            $this->timers[] = EventLoop::delay(self::CANCELLATION_TIMEOUT, $this->giveUp(...));
        }
    }

    private function giveUp(): void
    {
        $this->isGivenUp = true;
        $this->session->close();
    }
}
