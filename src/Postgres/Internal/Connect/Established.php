<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Postgres\PostgresHost;

/** A connection whose server waits for the first query, the session's settings made. Whoever gets it owns the stream. */
final readonly class Established
{
    public PostgresHost $host;

    /** Anybody who has it could cancel this session's queries. */
    private \SensitiveParameterValue $secretKey;

    /**
     * @param resource              $stream     does not block, and PHP buffers nothing of what is read
     * @param int                   $pid        of the server's process, as far as a pooler tells it
     * @param string                $secretKey  for {@see Connector::cancel()}
     * @param array<string, string> $parameters as the server reports them, such as server_version
     * @param Endpoint              $endpoint   where it is connected to
     * @param bool                  $tls        whether it is encrypted
     * @param string                $leftover   what has come already and was not read: whole messages or the beginning of one
     * @param bool                  $isPooled   whether there is a pooler between, which may give each transaction another session
     * @param string|null           $started    when the server was started; null when that is not known
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
        public ?string $started = null,
    ) {
        $this->host = $endpoint->host;
        $this->secretKey = new \SensitiveParameterValue($secretKey);
    }

    public function secretKey(): string
    {
        return $this->secretKey->getValue();
    }
}
