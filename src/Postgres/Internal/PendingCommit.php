<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Revolt\EventLoop;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Result;

/**
 * Sends a COMMIT and waits for its answer. Without a cancellation, this class sets no time limit, because synchronous
 * replication or deferred constraints can take long. After a minute, a warning is logged. A cancellation does not stop
 * the COMMIT: {@see CancellationLimit}.
 */
final class PendingCommit
{
    /** Seconds without an answer after which a warning is logged. */
    private const WARN_AFTER_SECONDS = 60;

    /**
     * @param \Closure(string): mixed $warn
     *
     * @throws ConnectionLostException|ConnectionClosedException
     */
    public static function await(Session $session, \Closure $warn, ?Cancellation $cancellation): void
    {
        $timer = EventLoop::unreference(EventLoop::delay(
            self::WARN_AFTER_SECONDS,
            static fn() => self::warn($session, $warn),
        ));
        try {
            CancellationLimit::during($session, $cancellation, static fn(): Result => $session->query('COMMIT'));
        } catch (CancelledException $cancelled) {
            throw ConnectionLostException::while(
                \sprintf(
                    'the transaction was cancelled, and the server did not answer its COMMIT within %d s',
                    CancellationLimit::SECONDS,
                ),
                $cancelled,
            );
        } finally {
            EventLoop::cancel($timer);
        }
    }

    /** @param \Closure(string): mixed $warn */
    private static function warn(Session $session, \Closure $warn): void
    {
        if ($session->isOpen()) {
            $warn(\sprintf(
                'A COMMIT has waited for %d s for the answer of the server process %d. That process may be stopped, or '
                    . 'it waits for synchronous replication or deferred constraints. To limit this wait, set the '
                    . 'option readTimeout or pass a cancellation.',
                self::WARN_AFTER_SECONDS,
                $session->backendPid(),
            ));
        }
    }
}
