<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSession;

/**
 * Tries hosts in their order, with all addresses of each, until one gives a session of the requested kind. The
 * remaining time is divided among the attempts left, so that a silent host does not use all of it.
 *
 * @template T
 */
final readonly class HostSearch
{
    private ConnectionAttempts $attempts;

    /**
     * @param \Closure(Endpoint, TargetSession, Deadline): T $attempt throws AttemptFailedException or ProtocolException
     */
    public function __construct(private PostgresOptions $options, private \Closure $attempt)
    {
        $this->attempts = new ConnectionAttempts($options->logger);
    }

    /**
     * @return T
     *
     * @throws ConnectionFailedException when no host gives a session in time
     * @throws AuthenticationException when a host was reached and the login failed; others are not tried then
     * @throws CancelledException
     */
    public function first(?Cancellation $cancellation): mixed
    {
        $deadline = Deadline::in($this->options->connectTimeout, $cancellation);
        $target = $this->options->targetSession;
        if ($target !== TargetSession::PreferStandby) {
            return $this->tryHosts($target, $deadline) ?? throw $this->attempts->failure();
        }

        return $this->tryHosts(TargetSession::Standby, $deadline->share(2))
            ?? $this->tryEndpoints($this->attempts->unsuitable(), TargetSession::Any, $deadline)
            ?? throw $this->attempts->failure();
    }

    /** @return T|null */
    private function tryHosts(TargetSession $target, Deadline $deadline): mixed
    {
        $left = \count($this->options->hosts);
        foreach ($this->options->hosts as $host) {
            $share = $deadline->share($left--);
            try {
                $session = $this->tryEndpoints(DnsLookup::endpoints($host, $share), $target, $share);
            } catch (AttemptFailedException $failure) {
                $this->attempts->add($host, $failure);
                continue;
            }
            if ($session !== null) {
                return $session;
            }
        }

        return null;
    }

    /**
     * @param list<Endpoint> $endpoints
     *
     * @return T|null
     */
    private function tryEndpoints(array $endpoints, TargetSession $target, Deadline $deadline): mixed
    {
        $left = \count($endpoints);
        foreach ($endpoints as $endpoint) {
            try {
                return ($this->attempt)($endpoint, $target, $deadline->share($left--));
            } catch (AttemptFailedException|ProtocolException $failure) {
                $this->attempts->add($endpoint, $failure);
            }
        }

        return null;
    }
}
