<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Revolt\EventLoop;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSessionAttrs;

use function Amp\async;

/**
 * Tries all addresses of all hosts in order, until a session matches `PostgresOptions::$targetSessionAttrs`. The next
 * attempt starts when an earlier attempt has failed, or after a delay. The earlier attempts continue after the delay.
 * So a host that does not answer delays the search only a little (as in RFC 8305, section 5). A failed login cancels
 * the attempts for later addresses at once. Attempts for earlier addresses have priority, so they continue for up to
 * MAX_WAIT_AFTER_REFUSAL. Call find() only once.
 *
 * @template T
 */
final class HostSearch
{
    /** Maximum seconds until the next address is tried in parallel. RFC 8305 has 0.25 s, for attempts without login. */
    private const ATTEMPT_DELAY = 1.0;

    /** Maximum seconds to wait for earlier attempts after a later server has refused the login. */
    private const MAX_WAIT_AFTER_REFUSAL = 2.0;

    private readonly ConnectionAttempts $attempts;

    /** Cancels all attempts when the search has a session or is interrupted, or some time after a refused login. */
    private readonly DeferredCancellation $end;

    private ?string $endTimer = null;

    /** Whether PreferStandby also accepts a primary: true after the search for a standby has started on every host. */
    private bool $acceptsUnsuitable = false;

    /** @var T|null */
    private mixed $session = null;

    /**
     * @param \Closure(Endpoint, TargetSessionAttrs, Deadline): T $attempt opens a session; throws NetworkException or
     *     ProtocolException, and CancelledException if the deadline is cancelled before the session is open
     */
    public function __construct(private readonly PostgresOptions $options, private readonly \Closure $attempt)
    {
        $this->attempts = new ConnectionAttempts($options->logger);
        $this->end = new DeferredCancellation();
    }

    /**
     * @return T the first session that matches `PostgresOptions::$targetSessionAttrs`
     *
     * @throws ConnectionFailedException when no host offers a matching session before the timeout
     * @throws AuthenticationException when a login failed, and no attempt for an earlier address succeeded
     * @throws CancelledException
     */
    public function find(?Cancellation $cancellation): mixed
    {
        $target = $this->options->targetSessionAttrs;
        $searches = array_map(
            fn(PostgresHost $host): \Closure => fn(Deadline $deadline, ?DeferredCancellation $later) => $this->tryHost(
                $host,
                $target === TargetSessionAttrs::PreferStandby ? TargetSessionAttrs::Standby : $target,
                $deadline,
                $later,
            ),
            $this->options->hosts,
        );
        if ($target === TargetSessionAttrs::PreferStandby) {
            $searches[] = $this->acceptUnsuitable(...);
        }
        $loop = EventLoop::getDriver();
        try {
            $this->tryAll($searches, Deadline::in($this->options->connectTimeout, $cancellation));
        } finally {
            $loop->cancel($this->endTimer ?? '');
        }

        return $this->session ?? throw $this->attempts->failure();
    }

    private function tryHost(
        PostgresHost $host,
        TargetSessionAttrs $target,
        Deadline $deadline,
        ?DeferredCancellation $later,
    ): void {
        try {
            $ips = $host->isSocket() ? [null] : DnsLookup::addresses($host->address ?? $host->host, $deadline);
        } catch (NetworkException $failure) {
            $this->attempts->add($host, $failure);

            return;
        }
        $endpoints = array_map(static fn(?string $ip) => new Endpoint($host, $ip), $ips);
        $this->tryEndpoints($endpoints, $target, $deadline, $later);
    }

    /** Accepts any session from now on, and again tries the reachable servers that were not standbys. */
    private function acceptUnsuitable(Deadline $deadline): void
    {
        $this->acceptsUnsuitable = true;
        $this->tryEndpoints($this->attempts->unsuitable, TargetSessionAttrs::Any, $deadline);
    }

    /** @param list<Endpoint> $endpoints */
    private function tryEndpoints(
        array $endpoints,
        TargetSessionAttrs $target,
        Deadline $deadline,
        ?DeferredCancellation $later = null,
    ): void {
        $this->tryAll(array_map(
            fn(Endpoint $endpoint): \Closure
                => fn(Deadline $deadline) => $this->tryEndpoint($endpoint, $target, $deadline),
            $endpoints,
        ), $deadline, $later);
    }

    private function tryEndpoint(Endpoint $endpoint, TargetSessionAttrs $target, Deadline $deadline): void
    {
        try {
            $this->session = ($this->attempt)($endpoint, $target, $deadline);
            $this->end->cancel();
        } catch (NetworkException|ProtocolException $failure) {
            $this->attempts->add($endpoint, $failure);
            if ($this->acceptsUnsuitable && $failure instanceof AttemptFailedException && $failure->isUnsuitable) {
                $this->tryEndpoint($endpoint, TargetSessionAttrs::Any, $deadline);
            }
        }
    }

    private function endSoon(): void
    {
        if (!$this->end->isCancelled()) {
            $this->endTimer ??= EventLoop::delay(self::MAX_WAIT_AFTER_REFUSAL, fn() => $this->end->cancel());
        }
    }

    /**
     * @param list<\Closure(Deadline, ?DeferredCancellation): void> $searches A search returns when it has found a
     *     session or has failed. To cancel all later searches, for example after a failed login, a search throws. A
     *     search of a host can't throw while earlier addresses are tried, so it cancels its second argument instead
     * @param DeferredCancellation|null $outer cancels the searches of later hosts: the second argument that the
     *     outer tryAll() passed to the search of this host; null without an outer tryAll()
     */
    private function tryAll(array $searches, Deadline $deadline, ?DeferredCancellation $outer = null): void
    {
        if (\count($searches) === 1) {
            $searches[0]($deadline, $outer);

            return;
        }
        $deadline = $deadline->orCancelledBy($this->end->getCancellation());
        $running = 0;
        $returned = new Condition();
        $cancellations = $failures = [];
        try {
            foreach ($searches as $number => $search) {
                ++$running;
                // $cancellations keeps each object, because the destructor would cancel the later searches.
                $later = $cancellations[] = new DeferredCancellation();
                $run = function () use ($number, $search, $deadline, $later, $outer, $returned, &$running, &$failures) {
                    try {
                        $deadline->throwIfCancelled();
                        $search($deadline, $later);
                    } catch (\Throwable $failure) {
                        if (!$failure instanceof CancelledException || !$this->end->isCancelled()) {
                            $failures[$number] = $failure;
                        }
                        $later->cancel();
                        $outer?->cancel();
                        $this->endSoon();
                    } finally {
                        --$running;
                        $returned->notify();
                    }
                };
                async($run);
                $deadline = $deadline->orCancelledBy($later->getCancellation());
                $returned->waitFor(min(self::ATTEMPT_DELAY, $this->options->connectTimeout / \count($searches)));
            }
            while ($running > 0) {
                $returned->wait();
            }
        } catch (\Throwable $interruption) {
            $this->end->cancel();
            throw $interruption;
        }
        if ($this->session === null && $failures !== []) {
            throw $failures[min(array_keys($failures))];
        }
    }
}
