<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\PostgresHost;

/** A connection that is ready for the first query, with the session's settings made. The receiver owns the stream. */
final readonly class OpenedConnection
{
    public PostgresHost $host;

    /** Hidden, because it allows to cancel this session's queries. */
    private \SensitiveParameterValue $secretKey;

    /**
     * @param resource $stream non-blocking, without a read buffer in PHP
     * @param int $pid id of the server's process, as the server or a pooler reports it
     * @param string $secretKey key for {@see Connector::cancel()}
     * @param array<string, string> $parameters parameters that the server reports, such as server_version
     * @param Endpoint $endpoint address of the server
     * @param bool $tls whether the connection is encrypted
     * @param string $leftover bytes received but not read: whole messages or the beginning of one
     * @param bool $isPooled whether a pooler in between may give each transaction another session
     * @param string|null $serverStartTime when the server was started; null when that is unknown
     */
    public function __construct(
        public mixed $stream,
        public int $pid,
        #[\SensitiveParameter]
        string $secretKey,
        public array $parameters,
        public Endpoint $endpoint,
        public bool $tls,
        public string $leftover,
        public bool $isPooled = false,
        public ?string $serverStartTime = null,
    ) {
        $this->host = $endpoint->host;
        $this->secretKey = new \SensitiveParameterValue($secretKey);
    }

    public function secretKey(): string
    {
        return $this->secretKey->getValue();
    }
}
