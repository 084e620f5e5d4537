<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;

/**
 * Sends a COMMIT and waits for its answer. Without a cancellation, this class sets no time limit, because synchronous
 * replication or deferred constraints can take long. After a minute, a warning is logged. If no answer arrives within
 * 5 seconds after a cancellation, the session is closed.
 */
final class PendingCommit
{
    /** Seconds without an answer after which a warning is logged. */
    private const WARN_AFTER_SECONDS = 60;

    /** Maximum seconds to wait for the answer after a cancellation. */
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
     * @param \Closure(string): void $warn
     *
     * @throws ConnectionLostException|ConnectionClosedException
     */
    public static function await(Session $session, \Closure $warn, ?Cancellation $cancellation): void
    {
        $commit = new self($session, $warn);
        $id = $cancellation?->subscribe($commit->startTimeLimit(...)) ?? '';
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
                    . 'it waits for synchronous replication or deferred constraints. To limit this wait, set the '
                    . 'option readTimeout or pass a cancellation.',
                self::WARN_AFTER_SECONDS,
                $this->session->backendPid(),
            ));
        }
    }

    /** Starts the time limit after a cancellation. Does nothing if the answer has arrived already. */
    private function startTimeLimit(): void
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
