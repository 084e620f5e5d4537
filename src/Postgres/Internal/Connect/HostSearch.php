<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSession;

use function Amp\async;

/**
 * Tries the addresses of all hosts in the given order, until a session matches `PostgresOptions::$targetSession`. The
 * next attempt starts when one has failed, or after a delay. Earlier attempts continue until one succeeds, so a host
 * that does not answer delays the search only a little (as in RFC 8305, 5).
 *
 * @template T
 */
final class HostSearch
{
    /** Maximum seconds until another address is tried, too. A login may take long, so this is longer than for TCP. */
    private const ATTEMPT_DELAY = 1.0;

    private readonly ConnectionAttempts $attempts;

    /** Cancelled as soon as the search has a session, or has failed. */
    private readonly DeferredCancellation $end;

    /** Whether a session that does not match is better than none, because the attempts for all hosts have started. */
    private bool $acceptsUnsuitable = false;

    /** @var T|null */
    private mixed $session = null;

    private ?\Throwable $failure = null;

    /**
     * @param \Closure(Endpoint, TargetSession, Deadline): T $attempt opens a session; throws NetworkException or
     *     ProtocolException, and CancelledException if the deadline is cancelled before it returns
     */
    public function __construct(private readonly PostgresOptions $options, private readonly \Closure $attempt)
    {
        $this->attempts = new ConnectionAttempts($options->logger);
        $this->end = new DeferredCancellation();
    }

    /**
     * Can be called once.
     *
     * @return T the first session that matches `PostgresOptions::$targetSession`
     *
     * @throws ConnectionFailedException when no host offers a session before the timeout
     * @throws AuthenticationException when a login failed; after that, no other host is tried
     * @throws CancelledException
     */
    public function first(?Cancellation $cancellation): mixed
    {
        $target = $this->options->targetSession;
        $searches = array_map(
            fn(PostgresHost $host): \Closure => fn(Deadline $deadline) => $this->tryHost(
                $host,
                $target === TargetSession::PreferStandby ? TargetSession::Standby : $target,
                $deadline,
            ),
            $this->options->hosts,
        );
        if ($target === TargetSession::PreferStandby) {
            $searches[] = $this->acceptUnsuitable(...);
        }
        $this->tryAll($searches, Deadline::in($this->options->connectTimeout, $cancellation));

        return $this->session ?? throw $this->attempts->failure();
    }

    private function tryHost(PostgresHost $host, TargetSession $target, Deadline $deadline): void
    {
        try {
            $ips = $host->isSocket() ? [null] : DnsLookup::addresses($host->address ?? $host->host, $deadline);
        } catch (NetworkException $failure) {
            $this->attempts->add($host, $failure);

            return;
        }
        $this->tryEndpoints(array_map(static fn(?string $ip) => new Endpoint($host, $ip), $ips), $target, $deadline);
    }

    /** Accepts any session from now on. First tries the servers that have answered without being a standby. */
    private function acceptUnsuitable(Deadline $deadline): void
    {
        $this->acceptsUnsuitable = true;
        $this->tryEndpoints($this->attempts->unsuitable(), TargetSession::Any, $deadline);
    }

    /** @param list<Endpoint> $endpoints */
    private function tryEndpoints(array $endpoints, TargetSession $target, Deadline $deadline): void
    {
        $this->tryAll(array_map(
            fn(Endpoint $endpoint): \Closure
                => fn(Deadline $deadline) => $this->tryEndpoint($endpoint, $target, $deadline),
            $endpoints,
        ), $deadline);
    }

    private function tryEndpoint(Endpoint $endpoint, TargetSession $target, Deadline $deadline): void
    {
        try {
            $this->session = ($this->attempt)($endpoint, $target, $deadline);
            $this->end->cancel();
        } catch (NetworkException|ProtocolException $failure) {
            $this->attempts->add($endpoint, $failure);
            if ($this->acceptsUnsuitable && $failure instanceof AttemptFailedException && $failure->isUnsuitable) {
                $this->tryEndpoint($endpoint, TargetSession::Any, $deadline);
            }
        }
    }

    /** @param list<\Closure(Deadline): void> $searches each returns when it has failed, or the search has ended */
    private function tryAll(array $searches, Deadline $deadline): void
    {
        if (\count($searches) === 1) {
            $searches[0]($deadline);

            return;
        }
        $deadline = $deadline->orCancelledBy($this->end->getCancellation());
        $running = 0;
        $returned = new Condition();
        try {
            foreach ($searches as $search) {
                if ($this->end->isCancelled()) {
                    break;
                }
                ++$running;
                async(function () use ($search, $deadline, $returned, &$running): void {
                    try {
                        $search($deadline);
                    } catch (\Throwable $failure) {
                        $this->failure ??= $failure;
                        $this->end->cancel();
                    } finally {
                        --$running;
                        $returned->notify();
                    }
                });
                $returned->waitFor(min(self::ATTEMPT_DELAY, $this->options->connectTimeout / \count($searches)));
            }
            while ($running > 0) {
                $returned->wait();
            }
        } catch (\Throwable $interruption) {
            $this->end->cancel();
            throw $interruption;
        }
        if ($this->session === null && $this->failure !== null) {
            throw $this->failure;
        }
    }
}
