<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Network\ClientStream;
use Spindle\Postgres\PostgresHost;

/** One address of a host: an IP address with a port, or a Unix socket. */
final readonly class Endpoint implements \Stringable
{
    /** @param string|null $ip null for a Unix socket */
    public function __construct(public PostgresHost $host, public ?string $ip) {}

    public function uri(): string
    {
        return $this->ip === null ? "unix://{$this->host}" : ClientStream::uri($this->ip, $this->host->port);
    }

    public function __toString(): string
    {
        return $this->ip === null || $this->ip === $this->host->host
            ? (string) $this->host
            : "{$this->host} ({$this->ip})";
    }
}
