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
 * Hosts in their order, all addresses of each, until one gives a session of the kind asked for.
 *
 * Those that are still to be tried share what is left of the time, so that one that is silent does not take all.
 *
 * @template T
 */
final readonly class HostSearch
{
    private Attempts $attempts;

    /** @param \Closure(Endpoint, TargetSession, Deadline): T $attempt throws AttemptFailedException or ProtocolException */
    public function __construct(private PostgresOptions $options, private \Closure $attempt)
    {
        $this->attempts = new Attempts($options->logger);
    }

    /**
     * @return T
     *
     * @throws ConnectionFailedException when no host gives one in time
     * @throws AuthenticationException   when one was reached and the login failed; others are not tried then
     * @throws CancelledException
     */
    public function first(?Cancellation $cancellation): mixed
    {
        $deadline = Deadline::in($this->options->connectTimeout, $cancellation);
        $target = $this->options->targetSession;
        if ($target !== TargetSession::PreferStandby) {
            return $this->any($target, $deadline) ?? throw $this->attempts->failure();
        }

        return $this->any(TargetSession::Standby, $deadline->share(2))
            ?? $this->among($this->attempts->unsuitable(), TargetSession::Any, $deadline)
            ?? throw $this->attempts->failure();
    }

    /** @return T|null */
    private function any(TargetSession $target, Deadline $deadline): mixed
    {
        $left = \count($this->options->hosts);
        foreach ($this->options->hosts as $host) {
            $share = $deadline->share($left--);
            try {
                $session = $this->among(Lookup::endpoints($host, $share), $target, $share);
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
    private function among(array $endpoints, TargetSession $target, Deadline $deadline): mixed
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
