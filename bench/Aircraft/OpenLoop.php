<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/**
 * Sends requests at fixed times, whether earlier ones are answered or not.
 *
 * Latency counts from the scheduled time. So if a server is blocked for a while, all requests of that time are counted
 * as slow.
 */
final class OpenLoop
{
    /** Seconds to wait after the last scheduled request. */
    private const TIMEOUT = 30.0;

    private const PIECE_BYTES = 65_536;

    /** @var list<resource> */
    private array $idle = [];

    /** @var array<int, resource> connections that wait for an answer */
    private array $waiting = [];

    /** @var array<int, float> scheduled time of their requests */
    private array $due = [];

    /** @var array<int, string> received bytes of their answers */
    private array $answers = [];

    /** @var list<float> in milliseconds */
    private array $latencies = [];

    private int $wrong = 0;

    private function __construct(
        private readonly string $address,
        private readonly string $target,
        private readonly string $expected,
    ) {}

    /**
     * @param string $expected text that each answer contains
     *
     * @return array{p50: float, p99: float, longest: float, count: int, problems: list<string>} times in milliseconds
     */
    public static function get(string $address, string $target, string $expected, int $rate, float $seconds): array
    {
        $loop = new self($address, $target, $expected);
        $count = (int) ceil($rate * $seconds);
        $loop->run($count, 1 / $rate);
        sort($loop->latencies);
        $answered = \count($loop->latencies);
        $percentile = static fn(float $share): float
            => $loop->latencies[max(0, (int) ceil($answered * $share) - 1)] ?? 0.0;

        return [
            'p50' => $percentile(0.5),
            'p99' => $percentile(0.99),
            'longest' => $percentile(1.0),
            'count' => $count,
            'problems' => [
                ...($answered === $count ? [] : [($count - $answered) . " of {$count} requests had no answer"]),
                ...($loop->wrong === 0 ? [] : ["{$loop->wrong} wrong answers"]),
            ],
        ];
    }

    private function run(int $count, float $interval): void
    {
        [$start, $sent] = [self::now() + $interval, 0];
        $end = $start + $count * $interval + self::TIMEOUT;
        while (($sent < $count || $this->waiting !== []) && ($now = self::now()) < $end) {
            for (; $sent < $count && ($due = $start + $sent * $interval) <= $now; ++$sent) {
                $this->send($due);
            }
            $left = max(0.0, ($sent < $count ? $start + $sent * $interval : $end) - self::now());
            if ($this->waiting === []) {
                usleep((int) ceil($left * 1e6));
                continue;
            }
            [$read, $write, $except] = [$this->waiting, null, null];
            @stream_select($read, $write, $except, (int) $left, (int) ceil(fmod($left, 1.0) * 1e6));
            foreach ($read as $id => $client) {
                $this->read($id, $client);
            }
        }
    }

    private function send(float $due): void
    {
        $client = array_pop($this->idle) ?? @stream_socket_client("tcp://{$this->address}");
        if (
            $client === false
            || @fwrite($client, "GET {$this->target} HTTP/1.1\r\nHost: {$this->address}\r\n\r\n") === false
        ) {
            return;
        }
        stream_set_blocking($client, false);
        [$this->waiting[(int) $client], $this->due[(int) $client], $this->answers[(int) $client]] = [$client, $due, ''];
    }

    /** @param resource $client */
    private function read(int $id, mixed $client): void
    {
        $this->answers[$id] .= fread($client, self::PIECE_BYTES);
        if (!feof($client) && !HttpAnswer::isComplete($this->answers[$id])) {
            return;
        }
        if (HttpAnswer::isComplete($this->answers[$id])) {
            $this->latencies[] = 1e3 * (self::now() - $this->due[$id]);
            $this->wrong += str_starts_with($this->answers[$id], 'HTTP/1.1 200 ')
                && str_contains($this->answers[$id], $this->expected)
                ? 0
                : 1;
        }
        unset($this->waiting[$id], $this->due[$id], $this->answers[$id]);
        if (!feof($client)) {
            $this->idle[] = $client;
        }
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
