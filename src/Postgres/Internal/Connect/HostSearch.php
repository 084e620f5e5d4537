<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Amp\Cancellation;
use Amp\CancelledException;
use Spindle\Internal\Network\Deadline;
use Spindle\Internal\Network\DnsLookup;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\TargetSession;

/**
 * Tries the addresses of all hosts in the given order, until a session matches `PostgresOptions::$targetSession`. Each
 * attempt gets a share of the remaining time, so that a host that does not answer can't use all of that time.
 *
 * @template T
 */
final readonly class HostSearch
{
    private ConnectionAttempts $attempts;

    /**
     * @param \Closure(Endpoint, TargetSession, Deadline): T $attempt opens a session; throws NetworkException or
     *     ProtocolException
     */
    public function __construct(private PostgresOptions $options, private \Closure $attempt)
    {
        $this->attempts = new ConnectionAttempts($options->logger);
    }

    /**
     * @return T the first session that matches `PostgresOptions::$targetSession`
     *
     * @throws ConnectionFailedException when no host offers a session before the timeout
     * @throws AuthenticationException when a login failed; after that, no other host is tried
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

    /** @return T|null null when no host offers a session that matches `$target` */
    private function tryHosts(TargetSession $target, Deadline $deadline): mixed
    {
        $left = \count($this->options->hosts);
        foreach ($this->options->hosts as $host) {
            $share = $deadline->share($left--);
            try {
                $session = $this->tryEndpoints(self::endpoints($host, $share), $target, $share);
            } catch (NetworkException $failure) {
                $this->attempts->add($host, $failure);
                continue;
            }
            if ($session !== null) {
                return $session;
            }
        }

        return null;
    }

    /** @return non-empty-list<Endpoint> */
    private static function endpoints(PostgresHost $host, Deadline $deadline): array
    {
        $ips = $host->isSocket() ? [null] : DnsLookup::addresses($host->address ?? $host->host, $deadline);

        return array_map(static fn(?string $ip): Endpoint => new Endpoint($host, $ip), $ips);
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
            } catch (NetworkException|ProtocolException $failure) {
                $this->attempts->add($endpoint, $failure);
            }
        }

        return null;
    }
}
