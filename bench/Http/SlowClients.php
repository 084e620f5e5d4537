<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Clients that begin a request, and then send one byte of it per second. */
final class SlowClients
{
    private const HEAD_START = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ";

    private const POLL_INTERVAL = 0.01;

    /** @var array<int, resource> connections that the server has not closed */
    private array $open = [];

    private readonly int $count;

    private readonly float $begin;

    private float $last = 0.0;

    /** @throws \RuntimeException when a connection fails */
    public function __construct(Site $site, int $count)
    {
        for ($i = 0; $i < $count; ++$i) {
            $client = @stream_socket_client("tcp://{$site->address()}", $code, $message, 5);
            if ($client === false) {
                throw new \RuntimeException("Only {$i} slow clients were connected: {$message}");
            }
            fwrite($client, self::HEAD_START);
            stream_set_blocking($client, false);
            $this->open[$i] = $client;
        }
        $this->count = $count;
        $this->begin = self::now();
    }

    /** Sends until the server has closed all connections, or the limit in seconds is over. */
    public function send(float $limit): void
    {
        $sent = 0;
        while ($this->open !== [] && ($passed = self::now() - $this->begin) < $limit) {
            // Bytes are spread evenly over each second.
            for (; $sent < (int) ($passed * $this->count); ++$sent) {
                if (isset($this->open[$sent % $this->count])) {
                    @fwrite($this->open[$sent % $this->count], 'x');
                }
            }
            $this->poll();
        }
    }

    public function closed(): int
    {
        return $this->count - \count($this->open);
    }

    /** @return float seconds until the last of the closed connections was closed */
    public function last(): float
    {
        return $this->last;
    }

    private function poll(): void
    {
        [$read, $write, $except] = [$this->open, null, null];
        if ((int) @stream_select($read, $write, $except, 0, (int) (self::POLL_INTERVAL * 1e6)) === 0) {
            return;
        }
        foreach ($read as $number => $client) {
            if ((string) @fread($client, 4096) === '' && feof($client)) {
                unset($this->open[$number]);
                $this->last = self::now() - $this->begin;
            }
        }
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
