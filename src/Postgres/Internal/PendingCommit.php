<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Clock;
use Spindle\Internal\OwnLoop;
use Spindle\Internal\WeakTimer;
use Spindle\Postgres\ConnectionClosedException;
use Spindle\Postgres\ConnectionLostException;
use Spindle\Postgres\Result;

/**
 * Sends a COMMIT and waits for its answer. Without a cancellation, this class sets no time limit, because synchronous
 * replication or deferred constraints can take long. After a minute, a warning is logged. A cancellation does not stop
 * the COMMIT, but limits the wait for the answer: {@see CancellationLimit}.
 */
final class PendingCommit
{
    private const WARN_AFTER_SECONDS = 60;

    /** @var \WeakMap<Session, self>|null the object that serves all commits of a session */
    private static ?\WeakMap $ofSessions = null;

    /** The session while its commit waits for the answer; otherwise null, so that the session can be destroyed. */
    private ?Session $session = null;

    /** @var (\Closure(string): mixed)|null set while a commit waits */
    private ?\Closure $warn = null;

    /** Start of the last commit, by {@see Clock::now()}. */
    private float $since = 0.0;

    /** Timer of {@see check()}. The timer is kept after a commit, because a new timer costs as much as a statement. */
    private ?string $timer = null;

    private readonly OwnLoop $loop;

    private function __construct()
    {
        $this->loop = new OwnLoop();
    }

    public function __destruct()
    {
        $this->loop->cancel($this->timer);
    }

    /**
     * @param \Closure(string): mixed $warn
     *
     * @throws ConnectionLostException|ConnectionClosedException
     */
    public static function await(Session $session, \Closure $warn, ?Cancellation $cancellation): void
    {
        self::$ofSessions ??= new \WeakMap();
        $commit = self::$ofSessions[$session] ??= new self();
        [$commit->session, $commit->warn, $commit->since] = [$session, $warn, Clock::now()];
        $commit->timer ??= $commit->startTimer(self::WARN_AFTER_SECONDS);
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
            $commit->session = $commit->warn = null;
        }
    }

    private function startTimer(float $seconds): string
    {
        return WeakTimer::after($seconds, $this, static fn(self $commit) => $commit->check());
    }

    /** Warns if the commit has waited for {@see WARN_AFTER_SECONDS}. Otherwise, sets a timer for the remaining time. */
    private function check(): void
    {
        $this->timer = null;
        if ($this->session === null || $this->warn === null || !$this->session->isOpen()) {
            return;
        }
        $left = self::WARN_AFTER_SECONDS - (Clock::now() - $this->since);
        if ($left > 0) {
            $this->timer = $this->startTimer($left);

            return;
        }
        ($this->warn)(\sprintf(
            'A COMMIT has waited for %d s for the answer of the server process %d. That process may be stopped, or it '
                . 'waits for synchronous replication or deferred constraints. To limit this wait, set the option '
                . 'readTimeout or pass a cancellation.',
            self::WARN_AFTER_SECONDS,
            $this->session->backendPid(),
        ));
    }
}
