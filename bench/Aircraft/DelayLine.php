<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/**
 * A proxy that delays both directions by the same time, like a long cable. Any number of messages may be in transit.
 */
final class DelayLine
{
    private const PIECE_BYTES = 65_536;

    private const BACKLOG = 1024;

    /** @var array<int, resource> */
    private array $open = [];

    /** @var array<int, int> the opposite stream, by stream */
    private array $others = [];

    /** @var \SplQueue<array{int, int, string}> due time by hrtime(), destination, and bytes; '' for the end */
    private \SplQueue $underWay;

    /** @var resource */
    private mixed $listener;

    /** Delay in nanoseconds. */
    private readonly int $delay;

    /**
     * @param string $socket the path of the Unix socket to create
     * @param string $server the path of the server's socket
     * @param float  $delay  seconds of a round trip
     */
    public function __construct(string $socket, private readonly string $server, float $delay)
    {
        $listener = stream_socket_server(
            "unix://{$socket}",
            $code,
            $message,
            \STREAM_SERVER_BIND | \STREAM_SERVER_LISTEN,
            stream_context_create(['socket' => ['backlog' => self::BACKLOG]]),
        );
        $this->listener = $listener !== false
            ? $listener
            : throw new \RuntimeException("Could not listen on {$socket}: {$message}");
        $this->underWay = new \SplQueue();
        $this->delay = (int) ($delay / 2 * 1e9);
    }

    public function run(): never
    {
        for (;;) {
            [$read, $write, $except] = [[...$this->open, -1 => $this->listener], null, null];
            $wait = $this->underWay->isEmpty() ? null : max(0, $this->underWay->bottom()[0] - (int) hrtime(true));
            $seconds = $wait === null ? null : intdiv($wait, 1_000_000_000);
            // Rounded up: otherwise the loop would spin for the last microsecond.
            @stream_select(
                $read,
                $write,
                $except,
                $seconds,
                $wait === null ? null : (int) ceil($wait % 1_000_000_000 / 1_000),
            );
            foreach ($read as $stream) {
                $stream === $this->listener ? $this->accept() : $this->receive($stream);
            }
            $this->forwardDue();
        }
    }

    private function accept(): void
    {
        $client = @stream_socket_accept($this->listener, 0);
        $server = $client === false ? false : @stream_socket_client("unix://{$this->server}");
        if ($client === false || $server === false) {
            return;
        }
        $this->others[(int) $client] = (int) $server;
        $this->others[(int) $server] = (int) $client;
        foreach ([$client, $server] as $stream) {
            stream_set_read_buffer($stream, 0);
            $this->open[(int) $stream] = $stream;
        }
    }

    /** @param resource $stream a readable one */
    private function receive(mixed $stream): void
    {
        if (!isset($this->open[(int) $stream])) {
            return;
        }
        $bytes = (string) @fread($stream, self::PIECE_BYTES);
        $other = $this->others[(int) $stream];
        $this->underWay->enqueue([hrtime(true) + $this->delay, $other, $bytes]);
        if ($bytes === '') {
            fclose($stream);
            unset($this->open[(int) $stream], $this->others[(int) $stream]);
        }
    }

    private function forwardDue(): void
    {
        $now = hrtime(true);
        while (!$this->underWay->isEmpty() && $this->underWay->bottom()[0] <= $now) {
            [, $to, $bytes] = $this->underWay->dequeue();
            $stream = $this->open[$to] ?? null;
            if ($stream === null) {
                continue;
            }
            if ($bytes !== '') {
                @fwrite($stream, $bytes);
            } else {
                fclose($stream);
                unset($this->open[$to], $this->others[$to]);
            }
        }
    }
}
