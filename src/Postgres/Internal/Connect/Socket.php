<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

use Spindle\Internal\LoopLimit;
use Spindle\Internal\Warnings;
use Spindle\Postgres\ProtocolException;

/** A stream for a login or a cancel request. The destructor closes it, unless {@see release()} was called. */
final class Socket
{
    /** Maximum bytes of one read. */
    private const READ_BYTES = 0x1_0000;

    /** @var resource|null null once the stream was closed or released */
    private $stream;

    private bool $isEncrypted = false;

    private bool $isReused = false;

    /** PHP's warning about a failed write, to be reported if the next read fails without a warning. */
    private string $writeWarning = '';

    /** @param resource $stream */
    private function __construct($stream)
    {
        $this->stream = $stream;
    }

    public function __destruct()
    {
        $this->close();
    }

    /**
     * @param resource $context stream context
     * @param PersistentStream|null $persistent null for a stream that is not persistent
     *
     * @throws AttemptFailedException
     */
    public static function open(
        Endpoint $endpoint,
        $context,
        Deadline $deadline,
        ?PersistentStream $persistent = null,
    ): self {
        // With STREAM_CLIENT_ASYNC_CONNECT, the call does not wait for the connection, and PHP ignores the timeout.
        [$stream, $warning] = Warnings::of(
            static fn() => $persistent !== null ? $persistent->open($context) : stream_socket_client(
                $endpoint->uri(),
                $code,
                $message,
                null,
                \STREAM_CLIENT_CONNECT | \STREAM_CLIENT_ASYNC_CONNECT,
                $context,
            ),
        );
        if ($stream === false) {
            // PHP's warning does not mention that too many files are open, so this is checked.
            throw AttemptFailedException::because(
                @fopen('/dev/null', 'r') === false ? 'too many open files' : Warnings::clause($warning),
            );
        }
        $socket = new self($stream);
        if (ftell($stream) > 0) {
            $socket->isReused = true;
            $socket->isEncrypted = isset(stream_get_meta_data($stream)['crypto']);

            return $socket;
        }
        stream_set_blocking($stream, false);
        // With a buffer, PHP could read unencrypted bytes before the TLS handshake. They would count as encrypted
        // (CVE-2021-23222).
        stream_set_read_buffer($stream, 0);
        if (!LoopLimit::allows($stream)) {
            throw AttemptFailedException::because(
                'too many files are open: this event loop only supports descriptors up to 1023. '
                    . 'Install ext-ev, ext-event or ext-uv, or use several processes',
            );
        }
        $deadline->writable($stream, 'the connection');
        if ($endpoint->ip !== null && stream_socket_get_name($stream, true) === false) {
            throw AttemptFailedException::because(self::connectError($stream));
        }
        KeepAlive::set($stream, $endpoint);

        return $socket;
    }

    /**
     * @param string $for what the caller waits for, such as "the login"
     *
     * @throws AttemptFailedException when the peer has closed the connection, or the deadline has passed
     */
    public function read(Deadline $deadline, string $for): string
    {
        $stream = $this->stream();
        while (true) {
            [$bytes, $warning] = Warnings::of(static fn() => fread($stream, self::READ_BYTES));
            if ($bytes !== false && $bytes !== '') {
                return $bytes;
            }
            if (feof($stream)) {
                $warning = $warning !== '' ? $warning : $this->writeWarning;
                throw AttemptFailedException::because(
                    "the server closed the connection while waiting for {$for}"
                        . ($warning === '' ? '' : ': ' . Warnings::clause($warning)),
                );
            }
            $deadline->readable($stream, $for);
        }
    }

    /**
     * Writes all bytes; suspends while the stream accepts none.
     *
     * @return bool false when the peer has closed the connection; {@see read()} may return a message with the reason
     *
     * @throws AttemptFailedException when the deadline has passed
     */
    public function write(#[\SensitiveParameter] string $bytes, Deadline $deadline, string $for): bool
    {
        $stream = $this->stream();
        while ($bytes !== '') {
            [$written, $warning] = Warnings::of(static fn() => fwrite($stream, $bytes));
            if ($written === false || $written === 0 && feof($stream)) {
                $this->writeWarning = $warning;

                return false;
            }
            $bytes = substr($bytes, $written);
            if ($bytes !== '') {
                $deadline->writable($stream, $for);
            }
        }

        return true;
    }

    /**
     * Suspends until the peer has closed the connection. Discards all bytes that arrive.
     *
     * @throws AttemptFailedException when the deadline has passed
     */
    public function awaitEnd(Deadline $deadline, string $for): void
    {
        $stream = $this->stream();
        while (!feof($stream)) {
            [$bytes] = Warnings::of(static fn() => fread($stream, self::READ_BYTES));
            if (($bytes === '' || $bytes === false) && !feof($stream)) {
                $deadline->readable($stream, $for);
            }
        }
    }

    /**
     * @return bool whether the connection is encrypted; false if the server does not offer TLS
     *
     * @throws AttemptFailedException when the server answers with an error or not at all, or the handshake fails
     * @throws ProtocolException when the peer is not a PostgreSQL server
     */
    public function secure(Tls $tls, Deadline $deadline): bool
    {
        $this->write(Messages::TLS_REQUEST, $deadline, 'the answer to the TLS request');
        $answer = $this->tlsAnswer($deadline);
        if ($answer === 'N') {
            return false;
        }
        if ($answer === 'E') {
            // The sender is not authenticated, so the text of the error is not shown.
            throw AttemptFailedException::because('the server answered the TLS request with an error');
        }
        if ($answer !== 'S') {
            throw ProtocolException::notPostgres($answer . stream_get_contents($this->stream(), 100));
        }
        if ((string) stream_socket_recvfrom($this->stream(), 1, \STREAM_PEEK) !== '') {
            throw ProtocolException::malformed(
                'unencrypted bytes followed the answer to the TLS request. They may be an attack',
            );
        }
        $this->handshake($tls, $deadline);

        return $this->isEncrypted = true;
    }

    public function isEncrypted(): bool
    {
        return $this->isEncrypted;
    }

    /** Whether an earlier request has opened the stream, and sent or received bytes on it. */
    public function isReused(): bool
    {
        return $this->isReused;
    }

    /** Whether the server has neither sent more bytes nor closed the connection, as far as this is known by now. */
    public function isSilent(): bool
    {
        $stream = $this->stream();
        [$bytes] = Warnings::of(static fn() => fread($stream, 1));

        return ($bytes === '' || $bytes === false) && !feof($stream);
    }

    /** Returns the server's certificate; null if the connection is not encrypted. */
    public function certificate(): ?\OpenSSLCertificate
    {
        $options = stream_context_get_options($this->stream())['ssl'] ?? null;
        $certificate = \is_array($options) ? $options['peer_certificate'] ?? null : null;

        return $certificate instanceof \OpenSSLCertificate ? $certificate : null;
    }

    /** @return resource the stream, which the caller owns from now on */
    public function release()
    {
        $stream = $this->stream();
        $this->stream = null;

        return $stream;
    }

    /** @param string $lastBytes bytes to send first, as far as the stream accepts them without a wait */
    public function close(string $lastBytes = ''): void
    {
        if ($this->stream !== null) {
            $stream = $this->stream;
            $this->stream = null;
            if ($lastBytes !== '') {
                Warnings::of(static fn() => fwrite($stream, $lastBytes));
            }
            Warnings::of(static fn() => fclose($stream));
        }
    }

    /** Returns the first byte of the server's answer to the TLS request. */
    private function tlsAnswer(Deadline $deadline): string
    {
        $stream = $this->stream();
        while (true) {
            $answer = (string) stream_socket_recvfrom($stream, 1);
            if ($answer !== '') {
                return $answer;
            }
            if (feof($stream)) {
                throw AttemptFailedException::because('the server closed the connection after the TLS request');
            }
            $deadline->readable($stream, 'the answer to the TLS request');
        }
    }

    private function handshake(Tls $tls, Deadline $deadline): void
    {
        $stream = $this->stream();
        while (true) {
            [$done, $warning] = Warnings::of(static fn() => stream_socket_enable_crypto($stream, true, Tls::VERSIONS));
            if ($done === true) {
                return;
            }
            if ($done === false) {
                throw AttemptFailedException::because($tls->explain($warning));
            }
            // The client's bytes fit into the socket's buffer, so the handshake never waits for a writable socket.
            $deadline->readable($stream, 'the TLS handshake');
        }
    }

    /** @return resource */
    private function stream()
    {
        return $this->stream ?? throw new \LogicException('The socket was closed or released');
    }

    /** @param resource $stream */
    private static function connectError($stream): string
    {
        $socket = \extension_loaded('sockets') ? Warnings::of(static fn() => socket_import_stream($stream))[0] : false;
        $code = $socket !== false ? socket_get_option($socket, \SOL_SOCKET, \SO_ERROR) : 0;

        return \is_int($code) && $code !== 0
            ? lcfirst(socket_strerror($code))
            : 'connection refused or host unreachable';
    }
}
