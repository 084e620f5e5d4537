<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Amp\CancelledException;
use Spindle\Internal\Async\FiberTrace;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\LoopLimit;
use Spindle\Internal\NullDevice;
use Spindle\Internal\NumberRange;
use Spindle\Internal\Preload;
use Spindle\Internal\Warnings;
use Spindle\Internal\WeakTimer;

/** A client's connection, plain or encrypted. The destructor closes it, unless {@see release()} was called. */
final class ClientStream
{
    /** Classes that are needed to open a connection or to report that it failed, for {@see Preload}. */
    public const PRELOADED = [
        self::class,
        ClientTls::class,
        CloseOnExec::class,
        Deadline::class,
        DnsLookup::class,
        FiberTrace::class,
        KeepAlive::class,
        Libc::class,
        LoopLimit::class,
        NetworkException::class,
        NetworkTimeoutException::class,
        NullDevice::class,
        NumberRange::class,
        Warnings::class,
        WeakTimer::class,
    ];

    private const READ_BYTES = 0x1_0000;

    /** Seconds after which the next address is tried, while the earlier attempts continue. */
    private const ATTEMPT_DELAY = 0.25;

    /** @var resource|null null once the stream was closed or released */
    private $stream;

    private readonly int $ownerPid;

    public bool $isEncrypted = false;

    /** Set if an earlier request to this PHP process has opened the stream and transferred bytes. */
    public bool $isReused = false;

    /** PHP's warning about a failed write, to be reported if the next read fails without a warning. */
    private string $writeWarning = '';

    /** @param resource $stream */
    private function __construct($stream, private readonly ?ClientTls $tls)
    {
        $this->stream = $stream;
        $this->ownerPid = (int) getmypid();
    }

    public function __destruct()
    {
        $this->close();
    }

    /**
     * Connects to an address. A new connection is not encrypted before {@see encrypt()}.
     *
     * @param string $uri "tcp://" with an IP address and a port, or "unix://" with a path
     * @param ClientTls|null $tls null if the connection is never encrypted
     * @param \Closure(resource): (resource|false)|null $open opens the stream with a stream context, and does not wait
     *     for the connection; null for stream_socket_client()
     *
     * @throws NetworkException when the connection can't be opened before the deadline
     * @throws CancelledException
     */
    public static function open(string $uri, ?ClientTls $tls, Deadline $deadline, ?\Closure $open = null): self
    {
        $self = self::begin($uri, $tls, $open);
        if (!$self->isReused) {
            $deadline->writable($self->stream(), 'the connection');
            if (str_starts_with($uri, 'tcp:')) {
                $self->finishConnecting();
            }
        }

        return $self;
    }

    /** @param \Closure(resource): (resource|false)|null $open as for {@see open()} */
    private static function begin(string $uri, ?ClientTls $tls, ?\Closure $open = null): self
    {
        $stream = self::openStream($uri, $tls, $open);
        $self = new self($stream, $tls);
        if (ftell($stream) > 0) { // PHP has kept this stream since an earlier request
            $self->isReused = true;
            $self->isEncrypted = isset(stream_get_meta_data($stream)['crypto']);

            return $self;
        }
        stream_set_blocking($stream, false);
        // With a buffer, PHP could read unencrypted bytes before the TLS handshake, and later return them as if they
        // were encrypted (CVE-2021-23222).
        stream_set_read_buffer($stream, 0);
        if (!LoopLimit::allows($stream)) {
            throw NetworkException::because(
                'too many files are open: this event loop only supports descriptors up to 1023. '
                    . 'Install ext-ev, ext-event or ext-uv, or use several processes',
            );
        }

        return $self;
    }

    /** @throws NetworkException when connecting has failed; the event loop reports such a stream as writable, too */
    private function finishConnecting(): void
    {
        $stream = $this->stream();
        if (stream_socket_get_name($stream, true) === false) {
            throw NetworkException::because(self::connectError($stream));
        }
        KeepAlive::set($stream);
    }

    /**
     * Opens the stream, and does not wait for the connection.
     *
     * @param \Closure(resource): (resource|false)|null $open as for {@see open()}
     *
     * @return resource
     *
     * @throws NetworkException
     */
    private static function openStream(string $uri, ?ClientTls $tls, ?\Closure $open)
    {
        if ($tls !== null && !\extension_loaded('openssl')) {
            throw NetworkException::because('encryption was requested, but ext-openssl is missing');
        }
        $context = stream_context_create([
            'socket' => ['tcp_nodelay' => true],
            'ssl' => $tls?->contextOptions() ?? [],
            'spindle' => ['pid' => getmypid()],
        ]);
        // With STREAM_CLIENT_ASYNC_CONNECT, the call does not wait for the connection, and PHP ignores the timeout.
        [$stream, $warning] = Warnings::of(
            static fn() => CloseOnExec::call(static fn() => $open !== null ? $open($context) : stream_socket_client(
                $uri,
                $code,
                $message,
                null,
                \STREAM_CLIENT_CONNECT | \STREAM_CLIENT_ASYNC_CONNECT,
                $context,
            )),
        );
        if ($stream === false) {
            // If too many files are open, PHP's warning does not say so. So NullDevice checks this.
            throw NetworkException::because(
                NullDevice::lacksDescriptor() ? 'too many open files' : Warnings::socketReason($warning),
            );
        }

        return $stream;
    }

    /** @throws NetworkException|CancelledException */
    public static function connectToHost(string $host, int $port, ?ClientTls $tls, Deadline $deadline): self
    {
        return self::connectToFirst(DnsLookup::addresses($host, $deadline), $port, $tls, $deadline);
    }

    /**
     * Connects to the first address that accepts. The next attempt starts when an attempt has failed, or after 0.25 s
     * (RFC 8305, section 5). Earlier attempts continue until one of them succeeds.
     *
     * @param non-empty-list<string> $ips
     *
     * @throws NetworkException the last failure
     * @throws CancelledException
     */
    public static function connectToFirst(array $ips, int $port, ?ClientTls $tls, Deadline $deadline): self
    {
        $attempts = [];
        $pid = (int) getmypid();
        try {
            while (true) {
                $ip = array_shift($ips);
                $wait = $ips === [] ? $deadline : $deadline->perAttempt(\count($ips) + 1)->within(self::ATTEMPT_DELAY);
                try {
                    if ($ip !== null) {
                        $attempts[] = self::begin(self::uri($ip, $port), $tls);
                    }
                    $streams = array_map(static fn(self $attempt) => $attempt->stream(), $attempts);
                    $key = $wait->firstWritable($streams, 'the connection');
                    $stream = $attempts[$key];
                    unset($attempts[$key]);
                    $stream->finishConnecting();

                    return $stream;
                } catch (NetworkException $failure) {
                    self::ensureProcess($pid);
                    if ($ips === [] && ($attempts === [] || $failure instanceof NetworkTimeoutException)) {
                        throw $failure;
                    }
                }
            }
        } finally {
            foreach ($attempts as $attempt) {
                $attempt->close();
            }
        }
    }

    public static function uri(string $host, int $port): string
    {
        return str_contains($host, ':') ? "tcp://[{$host}]:{$port}" : "tcp://{$host}:{$port}";
    }

    /**
     * Returns bytes that have arrived. Suspends while there are none.
     *
     * @param string $for what the caller waits for, such as "the login"
     * @param int<1, max> $maxBytes
     *
     * @throws NetworkException when the peer has closed the connection, or the deadline has passed
     * @throws CancelledException
     */
    public function read(Deadline $deadline, string $for, int $maxBytes = self::READ_BYTES): string
    {
        while (true) {
            $stream = $this->stream();
            [$bytes, $warning] = Warnings::of(static fn() => fread($stream, $maxBytes));
            if ($bytes !== false && $bytes !== '') {
                return $bytes;
            }
            if (feof($stream)) {
                $warning = $warning !== '' ? $warning : $this->writeWarning;
                throw NetworkException::because(
                    "the server closed the connection while waiting for {$for}"
                        . ($warning === '' ? '' : ': ' . Warnings::socketReason($warning)),
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
     * @throws NetworkException when the deadline has passed
     */
    public function write(#[\SensitiveParameter] string $bytes, Deadline $deadline, string $for): bool
    {
        while ($bytes !== '') {
            $stream = $this->stream();
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
     * @throws NetworkException when the deadline has passed
     */
    public function awaitEnd(Deadline $deadline, string $for): void
    {
        while (!feof($stream = $this->stream())) {
            [$bytes] = Warnings::of(static fn() => fread($stream, self::READ_BYTES));
            if (($bytes === '' || $bytes === false) && !feof($stream)) {
                $deadline->readable($stream, $for);
            }
        }
    }

    /**
     * @throws TlsException when the TLS handshake fails
     * @throws NetworkException when the deadline has passed
     * @throws CancelledException
     */
    public function encrypt(Deadline $deadline): void
    {
        $tls = $this->tls ?? throw new \LogicException('The stream was opened without settings for TLS');
        if ($tls->certificate !== null) {
            clearstatcache(true); // PHP caches targets of symbolic links for minutes, but the certificate may be new
        }
        while (true) {
            $stream = $this->stream();
            [$done, $warning] = Warnings::of(
                static fn() => stream_socket_enable_crypto($stream, true, ClientTls::CRYPTO_METHOD),
            );
            if ($done === false) {
                throw new TlsException($tls->explain($warning));
            }
            if ($done === true) {
                $this->isEncrypted = true;
                ForkedSockets::detachAtEnd();

                return;
            }
            // The client's bytes fit into the socket's buffer, so the handshake never waits for a writable socket.
            $deadline->readable($stream, 'the TLS handshake');
        }
    }

    /** Returns at most 100 bytes that have arrived on an unencrypted stream, without consuming them. */
    public function peek(): string
    {
        return (string) stream_socket_recvfrom($this->stream(), 100, \STREAM_PEEK);
    }

    /** Returns whether the connection is open and no bytes have arrived. Consumes one byte if bytes have arrived. */
    public function hasNothingToRead(): bool
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

    /**
     * Closes the connection. A fork only closes its descriptor, so that its parent process keeps the connection.
     *
     * @param string $lastBytes bytes to send first, as far as the stream accepts them without a wait
     */
    public function close(string $lastBytes = ''): void
    {
        $stream = $this->stream;
        if ($stream === null) {
            return;
        }
        $this->stream = null;
        if ($this->ownerPid !== getmypid()) {
            ForkedSockets::detach([$stream]);
        } elseif ($lastBytes !== '') {
            Warnings::of(static fn() => fwrite($stream, $lastBytes));
        }
        Warnings::of(static fn() => fclose($stream));
    }

    /**
     * @return resource
     *
     * @throws NetworkException in a fork, because the fork would receive bytes that are for its parent process
     */
    private function stream()
    {
        self::ensureProcess($this->ownerPid);

        return $this->stream ?? throw new \LogicException('The socket was closed or released');
    }

    /** @throws NetworkException when this process has another pid, because it is a fork */
    private static function ensureProcess(int $pid): void
    {
        if ($pid !== getmypid()) {
            throw NetworkException::because('a fork can not use a connection of its parent process');
        }
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
