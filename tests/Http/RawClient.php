<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Revolt\EventLoop;
use Spindle\Tests\Async;

/**
 * A client that sends arbitrary bytes, and parses responses strictly. Its waits run the event loop, so the server may
 * be in the same process.
 */
final class RawClient
{
    /** Maximum seconds of each wait. */
    private const WAIT_TIMEOUT = 25.0;

    private const READ_BYTES = 65_536;

    /** Host of {@see request()}. */
    public const HOST = 'server.test';

    private string $received = '';
    private bool $ended = false;

    /** @var array<string, \Closure(): void> what ends the waits that are under way, by their watchers */
    private array $waits = [];

    /** PHP's warning about the end of the connection; '' without one. */
    private string $warning = '';

    /** The same connection for a reset, null for an encrypted stream. */
    private readonly ?\Socket $socket;

    /** @param resource $stream not blocking */
    private function __construct(private mixed $stream)
    {
        $socket = \extension_loaded('sockets') ? socket_import_stream($stream) : false;
        $this->socket = $socket === false ? null : $socket;
    }

    /**
     * @param string                              $address in a server's format: tcp://, tls:// or unix://; TLS is not
     *     started yet
     * @param array<string, array<string, mixed>> $context options of the stream's context
     */
    public static function connect(string $address, array $context = []): self
    {
        $transport = str_starts_with($address, 'unix://')
            ? $address
            : 'tcp://' . preg_replace('~^\w+://~', '', $address);
        $stream = @stream_socket_client(
            $transport,
            $code,
            $message,
            self::WAIT_TIMEOUT,
            \STREAM_CLIENT_CONNECT,
            stream_context_create($context),
        );
        if ($stream === false) {
            throw new \RuntimeException("No connection to {$address}: {$message}");
        }
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);

        return new self($stream);
    }

    /**
     * Connects over TLS and accepts any certificate.
     *
     * @param array<string, mixed> $options of the context, such as peer_name
     */
    public static function connectSecurely(
        string $address,
        array $options = [],
        int $method = \STREAM_CRYPTO_METHOD_TLS_CLIENT,
    ): self {
        $client = self::connect(
            $address,
            ['ssl' => $options + ['verify_peer' => false, 'verify_peer_name' => false, 'capture_peer_cert' => true]],
        );
        $client->secure($method);

        return $client;
    }

    /** @throws \RuntimeException when the handshake fails */
    public function secure(int $method = \STREAM_CRYPTO_METHOD_TLS_CLIENT): void
    {
        do {
            $done = $this->quietly(fn() => stream_socket_enable_crypto($this->stream, true, $method));
            if ($done === false) {
                throw new \RuntimeException("The handshake failed: {$this->warning}");
            }
            if ($done === 0) {
                $this->await(EventLoop::onReadable(...));
            }
        } while ($done !== true);
    }

    /** @return resource for operations that this class lacks */
    public function stream(): mixed
    {
        return $this->stream;
    }

    /** Suspends until the kernel has taken all bytes. Errors are ignored if the server does not accept more. */
    public function send(string $bytes): self
    {
        for ($offset = 0; $offset < \strlen($bytes); $offset += $sent) {
            $part = substr($bytes, $offset, 1 << 18);
            $sent = $this->quietly(fn() => fwrite($this->stream, $part));
            if ($sent === false) {
                return $this;
            }
            if ($sent === 0) {
                $this->await(EventLoop::onWritable(...));
            }
        }

        return $this;
    }

    /** Sends in another fiber, so that the client can read at the same time. */
    public function sendConcurrently(string $bytes): void
    {
        Async::run(fn(): self => $this->send($bytes))->ignore();
    }

    public function get(string $target, string $fields = ''): self
    {
        return $this->request('GET', $target, $fields);
    }

    /** @param string $fields lines with their ends, in addition to Host and, with a body, Content-Length */
    public function request(string $method, string $target, string $fields = '', string $body = ''): self
    {
        $length = $body === '' ? '' : 'Content-Length: ' . \strlen($body) . "\r\n";

        return $this->send("{$method} {$target} HTTP/1.1\r\nHost: " . self::HOST . "\r\n{$length}{$fields}\r\n{$body}");
    }

    /**
     * Returns the next response, which may be an interim one.
     *
     * @param string $method of the request that it answers
     *
     * @throws \UnexpectedValueException when the response violates RFC 9112 or is incomplete
     */
    public function response(string $method = 'GET'): ReceivedResponse
    {
        $head = $this->until("\r\n\r\n");
        $lines = explode("\r\n", $head);
        if (preg_match('~^HTTP/1\.1 (\d{3}) ([\t\x20-\x7e\x80-\xff]*)$~D', array_shift($lines), $match) !== 1) {
            throw new \UnexpectedValueException("This is not the head of a response: {$head}");
        }
        [$status, $headers] = [(int) $match[1], self::fields($lines)];
        [$body, $trailers, $chunks] = match (true) {
            $status < 200, $status === 204, $status === 304, $method === 'HEAD' => ['', [], 0],
            isset($headers['transfer-encoding']) => $this->chunked($headers),
            isset($headers['content-length']) => [$this->bytes((int) $headers['content-length'][0]), [], 0],
            default => [$this->rest(), [], 0],
        };

        return new ReceivedResponse($head, $status, $match[2], $headers, $body, $trailers, $chunks);
    }

    /** Returns all unread bytes, up to the end of the connection. */
    public function rest(): string
    {
        while ($this->receive());

        return $this->take(\strlen($this->received));
    }

    /**
     * Returns whether the server has ended the connection and all bytes were read. Suspends until the connection has
     * ended or more bytes arrive.
     */
    public function isEnded(): bool
    {
        return $this->received === '' && !$this->receive();
    }

    /** Reads exactly $count bytes. */
    public function bytes(int $count): string
    {
        while (\strlen($this->received) < $count) {
            $this->receiveMore("{$count} bytes");
        }

        return $this->take($count);
    }

    /** Reads up to a mark, and returns the bytes before the mark. */
    public function until(string $mark): string
    {
        while (!str_contains($this->received, $mark)) {
            $this->receiveMore(addcslashes($mark, "\0..\37"));
        }
        $bytes = $this->take((int) strpos($this->received, $mark));
        $this->take(\strlen($mark));

        return $bytes;
    }

    /** Returns PHP's warning about the end of the connection; '' without one. */
    public function warning(): string
    {
        return $this->warning;
    }

    /** Ends the sending side. Responses can still be read. */
    public function end(): self
    {
        stream_socket_shutdown($this->stream, \STREAM_SHUT_WR);

        return $this;
    }

    /** Closes the connection. Fibers that wait for it get an exception. */
    public function close(): void
    {
        foreach ($this->waits as $end) {
            $end();
        }
        if (\is_resource($this->stream)) {
            fclose($this->stream);
        }
    }

    /** Closes the connection with a reset. */
    public function reset(): void
    {
        if (
            $this->socket === null
            || !socket_set_option($this->socket, \SOL_SOCKET, \SO_LINGER, ['l_onoff' => 1, 'l_linger' => 0])
        ) {
            throw new \RuntimeException('The connection can not be reset');
        }
        $this->close();
    }

    /**
     * @param array<string, list<string>> $headers
     *
     * @return array{string, array<string, list<string>>, int}
     */
    private function chunked(array $headers): array
    {
        if ($headers['transfer-encoding'] !== ['chunked'] || isset($headers['content-length'])) {
            throw new \UnexpectedValueException(
                'The length of the response is ambiguous: ' . json_encode($headers, \JSON_THROW_ON_ERROR),
            );
        }
        [$body, $count] = ['', 0];
        while (($size = $this->until("\r\n")) !== '0') {
            if (preg_match('/^[1-9a-f][0-9a-f]*$/D', $size) !== 1) {
                throw new \UnexpectedValueException("A chunk has the invalid size \"{$size}\"");
            }
            $body .= $this->bytes((int) hexdec($size));
            if ($this->bytes(2) !== "\r\n") {
                throw new \UnexpectedValueException('The data of a chunk does not end where its size says');
            }
            ++$count;
        }
        $lines = [];
        while (($line = $this->until("\r\n")) !== '') {
            $lines[] = $line;
        }

        return [$body, self::fields($lines), $count];
    }

    /**
     * @param list<string> $lines
     *
     * @return array<string, list<string>>
     */
    private static function fields(array $lines): array
    {
        $fields = [];
        foreach ($lines as $line) {
            if (preg_match(
                '~^([!#$%&\'*+\-.^_`|\x7e0-9A-Za-z]+):'
                    . ' ([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$~D',
                $line,
                $match,
            ) !== 1) {
                throw new \UnexpectedValueException("This is not a header line: {$line}");
            }
            $fields[strtolower($match[1])][] = $match[2] ?? '';
        }

        return $fields;
    }

    private function take(int $count): string
    {
        $bytes = substr($this->received, 0, $count);
        $this->received = substr($this->received, $count);

        return $bytes;
    }

    private function receiveMore(string $wanted): void
    {
        if (!$this->receive()) {
            throw new \UnexpectedValueException(
                "The connection ended before {$wanted} had come, after: " . substr($this->received, 0, 500),
            );
        }
    }

    /** @return bool whether bytes arrived; false at the end */
    private function receive(): bool
    {
        while (!$this->ended) {
            $bytes = $this->quietly(fn() => fread($this->stream, self::READ_BYTES));
            if ($bytes !== false && $bytes !== '') {
                $this->received .= $bytes;

                return true;
            }
            if (feof($this->stream)) {
                $this->ended = true;
            } else {
                $this->await(EventLoop::onReadable(...));
            }
        }

        return false;
    }

    /** @param \Closure(resource, \Closure(string): void): string $watch */
    private function await(\Closure $watch): void
    {
        $suspension = EventLoop::getSuspension();
        $watcher = $watch($this->stream, function (string $id) use ($suspension): void {
            EventLoop::cancel($id);
            unset($this->waits[$id]);
            $suspension->resume();
        });
        $this->waits[$watcher] = $end = function (
            string $why = 'The client has closed the connection',
        ) use ($suspension, $watcher): void {
            EventLoop::cancel($watcher);
            unset($this->waits[$watcher]);
            $suspension->throw(new \RuntimeException($why));
        };
        $timer = EventLoop::delay(
            self::WAIT_TIMEOUT,
            static fn() => $end('The server let the client wait for ' . self::WAIT_TIMEOUT . ' s'),
        );
        try {
            $suspension->suspend();
        } finally {
            EventLoop::cancel($timer);
        }
    }

    /**
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return T
     */
    private function quietly(\Closure $call): mixed
    {
        set_error_handler(function (int $level, string $message): bool {
            $this->warning = $message;

            return true;
        });
        try {
            return $call();
        } finally {
            restore_error_handler();
        }
    }
}
