<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Server;

use Revolt\EventLoop;
use Spindle\Internal\Warnings;

/** The stream of a connection, plain or encrypted. No method blocks or suspends. */
final class Transport
{
    private const TLS_RECORD_BYTES = 16_384;

    /** Maximum bytes per write. A write copies its bytes. Without a maximum, each write would copy all unsent bytes. */
    private const MAX_SEND_BYTES = 262_144;

    /** Socket option of Linux. Its first byte is the connection's state: TCP_CLOSE_WAIT after a FIN of the client. */
    private const TCP_INFO = 11;
    private const TCP_CLOSE_WAIT = 8;

    private string $unsent = '';
    private int $sentOffset = 0;

    /** Identifiers of event loop callbacks; the second one exists while bytes are unsent. */
    private readonly string $readWatcher;
    private ?string $writeWatcher = null;

    public bool $paused = false;

    public bool $sending = false;

    private bool $closed = false;

    /** Whether the end of the connection will show that the response is incomplete: {@see markIncomplete()}. */
    private bool $isIncomplete = false;

    /** Whether the other side has reset the connection, TLS has failed, or bytes could not be sent. */
    public bool $isBroken = false;

    /**
     * The connection as an object of ext-sockets, created when needed. For TLS, the constructor creates the object,
     * because PHP can't create it from an encrypted stream.
     */
    private ?\Socket $socket = null;

    private bool $hasHandshakeBegun = false;

    /** Null once the stream is closed, so that this object and the connection do not keep each other in memory. */
    private ?TransportEvents $events;

    /** Bytes received, and bytes to be sent that the kernel has accepted. */
    public int $receivedBytes = 0;
    public int $sentBytes = 0;

    /** @param resource $stream non-blocking */
    public function __construct(private $stream, private readonly bool $secure, TransportEvents $events)
    {
        $this->events = $events;
        $this->readWatcher = EventLoop::onReadable($stream, OwnCallback::of($events->readable(...)));
        if ($secure) {
            $this->socket = self::socketOf($stream);
        }
    }

    /** @return resource */
    public function stream()
    {
        return $this->stream;
    }

    /**
     * @param \Closure(string): void $warn called for a faulty certificate of the server
     *
     * @return bool|null whether the TLS handshake has succeeded; null while more bytes of the client are needed
     */
    public function handshake(\Closure $warn): ?bool
    {
        if (!$this->hasHandshakeBegun) { // PHP reads the certificate options only in the first call
            $this->hasHandshakeBegun = true;
            foreach (Certificates::prepareHandshake($this->stream) as $name => $fault) {
                $warn("The certificate for {$name} is not used: {$fault}");
            }
        }
        [$done, , $warning] = Warnings::of(
            fn() => stream_socket_enable_crypto($this->stream, true, Certificates::CRYPTO_METHOD),
        );
        // A client can cause only warnings that begin with "SSL". Others are about the server's certificate files.
        if ($warning !== '' && !str_starts_with(Warnings::reason($warning), 'SSL')) {
            $warn('TLS connections fail because of the certificate: ' . strtok(Warnings::reason($warning), ';'));
        }

        return $done === 0 ? null : $done;
    }

    /**
     * @param int<1, max> $size maximum bytes; TLS may return more, up to a whole record
     *
     * @return string|null '' when the other side has ended; null when no bytes have arrived
     */
    public function receive(int $size): ?string
    {
        if ($this->secure) {
            // Reads a whole record, because the event loop does not report decrypted unread bytes: RFC 8446, 5.1.
            [$bytes, $warning] = Warnings::of(fn() => fread($this->stream, max($size, self::TLS_RECORD_BYTES)));
        } else {
            // stream_socket_recvfrom() is faster than fread(), never warns, and distinguishes the end from no data.
            $bytes = stream_socket_recvfrom($this->stream, $size);
            if ($bytes === '') {
                return '';
            }
            $warning = '';
        }
        if ($bytes === false || $bytes === '') {
            $ended = feof($this->stream);
            // The regular end of a plain connection was handled above. The regular end of TLS causes no warning. A TLS
            // alert about an error causes a warning. After such an alert, nothing can be sent (RFC 8446, 6.2).
            $this->isBroken = $this->isBroken || $ended && (!$this->secure || $warning !== '' || $this->wasReset());

            return $ended ? '' : null;
        }
        $this->receivedBytes += \strlen($bytes);

        return $bytes;
    }

    /**
     * Returns whether the other side has ended or reset the connection, without receiving the bytes before the end.
     *
     * A reset and the close of a Unix socket are always detected. The end of a TCP connection is detected on Linux with
     * ext-sockets, when the kernel has received all bytes before the end. Only {@see receive()} detects other ends.
     */
    public function hasUnreadEnd(): bool
    {
        // Sending an empty string transfers no byte, but fails after a reset.
        [$sent] = Warnings::of(fn() => stream_socket_sendto($this->stream, ''));
        if ($sent !== 0) {
            return $this->isBroken = true;
        }
        $this->socket ??= self::socketOf($this->stream);
        $socket = $this->socket;
        if ($socket === null || \PHP_OS_FAMILY !== 'Linux') {
            return false;
        }
        // Unix sockets do not have this option
        [$state] = Warnings::of(static fn() => socket_get_option($socket, \SOL_TCP, self::TCP_INFO));

        return \is_int($state) && ($state & 0xff) === self::TCP_CLOSE_WAIT;
    }

    /** @param resource $stream */
    private static function socketOf($stream): ?\Socket
    {
        if (!\extension_loaded('sockets')) {
            return null;
        }
        $socket = socket_import_stream($stream);

        return $socket === false ? null : $socket;
    }

    /** @return bool whether all bytes were sent; otherwise the rest is sent later, unless the connection is broken */
    public function send(string $bytes): bool
    {
        if (!$this->sending && \strlen($bytes) <= self::MAX_SEND_BYTES) {
            // writeFast() hides the warning that the client has closed the connection. Clients may do so at any time.
            $sent = Warnings::writeFast($this->stream, $bytes);
            if ($sent === false) {
                $this->isBroken = true;

                return false;
            }
            $this->sentBytes += $sent;
            if ($sent === \strlen($bytes)) {
                return true;
            }
            $bytes = substr($bytes, $sent);
        }
        $this->unsent .= $bytes;
        $this->sending = true;
        $this->flush();
        if ($this->sending) {
            $this->writeWatcher ??= EventLoop::onWritable($this->stream, OwnCallback::of($this->trySend(...)));
        }

        return !$this->sending && !$this->isBroken;
    }

    public function pause(): void
    {
        EventLoop::disable($this->readWatcher);
        $this->paused = true;
    }

    public function resume(): void
    {
        if ($this->paused && !$this->closed) {
            EventLoop::enable($this->readWatcher);
            $this->paused = false;
        }
    }

    /**
     * Makes the end of the connection show the client that the response is incomplete, even if this process is killed.
     * Call this method again with false once the response is complete.
     *
     * TLS then ends without its closing alert. Plain TCP ends with a reset, which needs ext-sockets. The end of a Unix
     * socket can't show this.
     */
    public function markIncomplete(bool $isIncomplete): void
    {
        $socket = $this->secure ? null : $this->socket ?? self::socketOf($this->stream);
        if ($socket !== null) {
            Warnings::of(
                static fn()
                    => socket_set_option(
                        $socket,
                        \SOL_SOCKET,
                        \SO_LINGER,
                        ['l_onoff' => (int) $isIncomplete, 'l_linger' => 0],
                    ),
            );
        }
        $this->isIncomplete = $isIncomplete && ($this->secure || $socket !== null);
    }

    /** Ends this side of the connection. If the end has to be a reset, does nothing: {@see close()} sends the reset. */
    public function end(): void
    {
        if ($this->secure && !$this->isIncomplete) {
            // Sends the closing alert, which tells the client that the response is complete.
            Warnings::of(fn() => stream_socket_enable_crypto($this->stream, false));
        }
        if ($this->secure || !$this->isIncomplete) {
            Warnings::of(fn() => stream_socket_shutdown($this->stream, \STREAM_SHUT_WR));
        }
    }

    public function close(): void
    {
        $this->closed = true;
        EventLoop::cancel($this->readWatcher);
        $this->stopWriting();
        $this->discardUnsent();
        $this->events = null;
        if ($this->secure) {
            $this->end(); // sends the TLS alert, which fclose() would send too late: after the shutdown below
        }
        // If a program started by a handler has this descriptor too, fclose() alone would not end the connection.
        if ($this->secure || !$this->isIncomplete) {
            Warnings::suppressed(fn(): bool => stream_socket_shutdown($this->stream, \STREAM_SHUT_RDWR));
        }
        $this->secure ? Warnings::of(fn() => fclose($this->stream)) : fclose($this->stream);
        $this->socket = null;
    }

    /** Sends as many unsent bytes as possible, even if the event loop has not reported that the stream is writable. */
    public function trySend(): void
    {
        $this->flush();
        if (!$this->sending) {
            $this->stopWriting();
            $this->events?->written();
        }
    }

    private function flush(): void
    {
        do {
            $bytes = substr($this->unsent, $this->sentOffset, self::MAX_SEND_BYTES);
            $sent = Warnings::writeFast($this->stream, $bytes);
            if ($sent === false || $sent === 0 && $this->secure && $this->wasReset()) {
                $this->isBroken = true;
                $this->discardUnsent();

                return;
            }
            $this->sentBytes += $sent;
            $this->sentOffset += $sent;
        } while ($sent === self::MAX_SEND_BYTES);
        if ($this->sentOffset === \strlen($this->unsent)) {
            $this->discardUnsent();
        }
    }

    private function discardUnsent(): void
    {
        [$this->unsent, $this->sentOffset, $this->sending] = ['', 0, false];
    }

    /** Returns whether the client has reset a TLS connection: then the kernel no longer knows the client's address. */
    private function wasReset(): bool
    {
        return stream_socket_get_name($this->stream, true) === false;
    }

    private function stopWriting(): void
    {
        if ($this->writeWatcher !== null) {
            EventLoop::cancel($this->writeWatcher);
            $this->writeWatcher = null;
        }
    }
}
