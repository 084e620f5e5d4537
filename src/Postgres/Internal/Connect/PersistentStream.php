<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Postgres\PostgresOptions;

/**
 * A stream to a server. PHP keeps the stream open for later HTTP requests of the same process. The stream is reserved
 * for one connection until {@see release()}. Simultaneous connections with the same options use different streams,
 * numbered from 0.
 */
final class PersistentStream
{
    /** Number of hexadecimal digits in the name. {@see open()} converts them to an integer, and 16 could overflow. */
    private const NAME_DIGITS = 15;

    private const HASH = 'sha256';

    /** File with a random number for each boot of Linux, so that no other machine can derive {@see $secret}. */
    private const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';

    /** @var array<string, true> names of the reserved streams */
    private static array $reserved = [];

    /** @var array<string, resource> streams for the next request, kept so that get_resources() finds them in a fork */
    private static array $waiting = []; // @phpstan-ignore property.onlyWritten

    /** Name of the stream, unique in this process and not secret. PHP finds the stream by an address with this name. */
    private readonly string $name;

    private readonly \SensitiveParameterValue $secret;

    private function __construct(
        private readonly Endpoint $endpoint,
        #[\SensitiveParameter]
        string $secret,
        #[\SensitiveParameter]
        ?string $password,
    ) {
        $this->secret = new \SensitiveParameterValue($secret);
        $this->name = substr(hash_hmac(self::HASH, serialize($password), $secret), 0, self::NAME_DIGITS);
    }

    public static function reserve(PostgresOptions $options, Endpoint $endpoint): self
    {
        // A fork has its parent's streams, but must not use them. So the identity contains the process id.
        $identity = serialize([
            getmypid(), $endpoint->uri(), $endpoint->host->host, $options->user, $options->database,
            $options->passwordFile, $options->authentication, $options->channelBinding,
            $options->tlsFor($endpoint->host), $options->tlsCaFile, $options->tlsCertificate,
            $options->tlsKey, $options->applicationName, $options->settings, $options->statementTimeout,
        ]);
        $bootId = (string) Files::read(self::BOOT_ID_FILE);
        $number = 0;
        do {
            $secret = hash_hmac(self::HASH, "{$number} {$identity}", $bootId);
            $stream = new self($endpoint, $secret, $options->password());
            ++$number;
        } while (isset(self::$reserved[$stream->name]));
        self::$reserved[$stream->name] = true;

        return $stream;
    }

    public function release(): void
    {
        unset(self::$reserved[$this->name]);
    }

    /** @param resource $stream */
    public function leave($stream): void
    {
        self::$waiting[$this->name] = $stream;
    }

    /**
     * Returns the stream of an earlier request. If there is none, or the server has closed it, opens a new stream.
     *
     * @param resource $context stream context of a new TCP stream
     *
     * @return resource|false stream that may still be connecting, as with STREAM_CLIENT_ASYNC_CONNECT; false on failure
     */
    public function open($context)
    {
        if ($this->endpoint->ip !== null) {
            // PHP finds a stream by its whole address, including the name. When PHP connects, it ignores the name.
            return stream_socket_client(
                "{$this->endpoint->uri()}/{$this->name}",
                $code,
                $message,
                null,
                \STREAM_CLIENT_CONNECT | \STREAM_CLIENT_ASYNC_CONNECT | \STREAM_CLIENT_PERSISTENT,
                $context,
            );
        }

        // PHP finds the stream by the path and the port, so the name becomes the port. The port is negative, because
        // PHP ignores a negative port when it connects.
        return pfsockopen($this->endpoint->uri(), -(int) hexdec($this->name) - 1);
    }

    /**
     * Returns the secret with which {@see Handover} signs data that an HTTP request leaves on this stream. The data and
     * the signature are in a query that the server may log. So the secret does not depend on the password. Otherwise, a
     * reader of the log could test guessed passwords against the signature.
     */
    public function secret(): string
    {
        return $this->secret->getValue();
    }
}
