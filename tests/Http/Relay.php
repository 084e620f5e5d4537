<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Revolt\EventLoop;
use Spindle\Tests\Streams;

/** Forwards bytes between one client and a server, and records what the server sends. */
final class Relay
{
    public readonly string $address;

    public string $sent = '';

    /** @var list<string> */
    private array $watchers = [];

    /** @var list<resource> */
    private array $streams;

    public function __construct(string $server)
    {
        $socket = Streams::server();
        $this->address = 'tls://' . stream_socket_get_name($socket, false);
        $this->streams = [$socket];
        $this->watchers[] = EventLoop::onReadable($socket, function (string $id) use ($socket, $server): void {
            EventLoop::cancel($id);
            $this->join($socket, $server);
        });
    }

    /** @return list<int> types of the TLS records sent by the server: RFC 8446, 5.1 */
    public function records(): array
    {
        $types = [];
        for ($at = 0; $at + 5 <= \strlen($this->sent); $at += 5 + $length) {
            /** @var array{type: int, length: int} $header */
            $header = unpack('Ctype/nversion/nlength', $this->sent, $at);
            $types[] = $header['type'];
            $length = $header['length'];
        }

        return $types;
    }

    /** Sends bytes to the server that the client has not sent. */
    public function inject(string $bytes): void
    {
        fwrite($this->streams[2], $bytes);
    }

    /** Closes the client's connection with a TCP reset, and the other sockets without one. Needs ext-sockets. */
    public function reset(): void
    {
        $client = isset($this->streams[1]) ? socket_import_stream($this->streams[1]) : false;
        $linger = ['l_onoff' => 1, 'l_linger' => 0];
        if ($client === false || !socket_set_option($client, \SOL_SOCKET, \SO_LINGER, $linger)) {
            throw new \RuntimeException('The connection can not be reset');
        }
        unset($client); // the Socket object keeps the descriptor open
        $this->close();
    }

    public function close(): void
    {
        array_map(EventLoop::cancel(...), $this->watchers);
        array_map(static fn($stream) => \is_resource($stream) && fclose($stream), $this->streams);
    }

    /** @param resource $socket */
    private function join(mixed $socket, string $server): void
    {
        $client = stream_socket_accept($socket, 0);
        $upstream = stream_socket_client(str_replace('tls://', 'tcp://', $server));
        if ($client === false || $upstream === false) {
            throw new \RuntimeException('The relay has lost an end');
        }
        array_push($this->streams, $client, $upstream);
        $this->pump($client, $upstream, static fn() => null);
        $this->pump($upstream, $client, function (string $bytes): void {
            $this->sent .= $bytes;
        });
    }

    /**
     * @param resource                $from
     * @param resource                $to
     * @param \Closure(string): mixed $see
     */
    private function pump(mixed $from, mixed $to, \Closure $see): void
    {
        stream_set_blocking($from, false);
        $this->watchers[] = EventLoop::onReadable($from, static function (string $id) use ($from, $to, $see): void {
            $bytes = (string) fread($from, 65_536);
            $see($bytes);
            fwrite($to, $bytes);
            if (feof($from)) {
                EventLoop::cancel($id);
                stream_socket_shutdown($to, \STREAM_SHUT_WR);
            }
        });
    }
}
