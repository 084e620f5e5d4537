<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Psr\Log\LoggerInterface;
use Spindle\Internal\Network\NetworkException;
use Spindle\Postgres\AuthenticationException;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Postgres\PostgresHost;
use Spindle\Postgres\ProtocolException;

/** Collects and logs the failures of all addresses that were tried for one connection. */
final class ConnectionAttempts
{
    /** @var list<string> addresses, each with the reason of its failure */
    private array $reasons = [];

    /** @var list<Endpoint> reachable endpoints whose sessions do not match `PostgresOptions::$targetSessionAttrs` */
    public array $unsuitable = [];

    /** SQLSTATE of the last failure that has one. */
    private ?string $sqlState = null;

    /** The first failure for which `$isPermanent` is true; the last failure if there is no such failure. */
    private ?\Throwable $cause = null;

    public function __construct(private readonly ?LoggerInterface $logger) {}

    /**
     * @param Endpoint|PostgresHost $where endpoint, or a host whose name could not be resolved
     *
     * @throws AuthenticationException when the login failed; as in libpq, the caller must not try later hosts
     */
    public function add(Endpoint|PostgresHost $where, NetworkException|ProtocolException $failure): void
    {
        $this->logger?->debug(
            'Could not connect to PostgreSQL at {where}: {reason}',
            ['where' => (string) $where, 'reason' => $failure->getMessage()],
        );
        $this->reasons[] = "{$where}: {$failure->getMessage()}";
        if (!$this->cause instanceof AttemptFailedException || !$this->cause->isPermanent) {
            $this->cause = $failure;
        }
        if (!$failure instanceof AttemptFailedException) {
            return;
        }
        if ($failure->isAuthentication) {
            throw AuthenticationException::at((string) $where, $failure->getMessage(), $failure->sqlState, $failure);
        }
        $this->sqlState = $failure->sqlState ?? $this->sqlState;
        if ($failure->isUnsuitable && $where instanceof Endpoint) {
            $this->unsuitable[] = $where;
        }
    }

    public function failure(): ConnectionFailedException
    {
        return ConnectionFailedException::everywhere(
            $this->reasons === [] ? ['no host was tried'] : $this->reasons,
            $this->sqlState,
            $this->cause,
        );
    }
}
