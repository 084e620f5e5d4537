<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/** A connection whose session is set up and ready for the first query. The caller owns the stream. */
final readonly class OpenedConnection
{
    private \SensitiveParameterValue $secretKey;

    /**
     * @param resource $stream non-blocking; PHP's own read buffer is off
     * @param int $pid id of the session's process at the server, as the server or a pooler has reported it
     * @param string $secretKey key for cancel requests ({@see Connector::cancel()}), hidden from dumps
     * @param array<string, string> $parameters parameters that the server has reported, such as server_version
     * @param string $leftover received bytes that were not processed
     * @param bool $isPooled whether the connection is to a pooler, which may use another session for each transaction
     * @param string|null $serverStartTime the server's start time in seconds since 1970; null when the time is unknown
     * @param PersistentStream|null $persistent the stream, if it is persistent. The caller must call its release()
     * @param int|null $roundTrip nanoseconds of the session's shortest round trip so far, if an earlier HTTP request of
     *     this process has opened the session; null for a new session
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
        public ?PersistentStream $persistent = null,
        public ?int $roundTrip = null,
    ) {
        $this->secretKey = new \SensitiveParameterValue($secretKey);
    }

    public function secretKey(): string
    {
        return $this->secretKey->getValue();
    }
}
