<?php

declare(strict_types=1);

namespace Aircraft\Demo;

use Amp\Cancellation;
use Amp\CancelledException;
use Amp\CompositeCancellation;
use Amp\Socket\Socket;
use Amp\TimeoutCancellation;

use function Amp\async;
use function Amp\Future\await;
use function Amp\Socket\connect;

/** Clients that repeatedly add, read, change and delete an aircraft, each in its own fiber and connection. */
final class Clients
{
    /** Seconds to wait for an answer. */
    private const TIMEOUT = 15.0;

    /** @var list<float> duration of each cycle, in the order of completion */
    private array $milliseconds = [];

    private int $errors = 0;

    private ?string $firstError = null;

    /** Duration of the whole run, in seconds. */
    private float $elapsed = 0.0;

    /** @param string $address host:port */
    public function __construct(private readonly string $address, private readonly int $count) {}

    /** @throws CancelledException when cancelled, but not when the seconds are over */
    public function run(float $seconds, Cancellation $cancellation): void
    {
        $start = hrtime(true);
        $end = $start + (int) ($seconds * 1e9);
        await(array_map(
            fn(int $client) => async(fn() => $this->client($client, $end, $cancellation)),
            range(1, $this->count),
        ));
        $this->elapsed = (hrtime(true) - $start) / 1e9;
    }

    public function cycles(): int
    {
        return \count($this->milliseconds);
    }

    /**
     * @return array{
     *     clients: int,
     *     seconds: float,
     *     cycles: int,
     *     cycles_per_second: float,
     *     p50_ms: float,
     *     p99_ms: float,
     *     errors: int,
     *     first_error: string|null,
     * }
     */
    public function result(): array
    {
        $sorted = $this->milliseconds;
        sort($sorted);
        $percentile = static fn(float $share): float
            => $sorted === [] ? 0.0 : round($sorted[max(0, (int) ceil($share * \count($sorted)) - 1)], 2);

        return [
            'clients' => $this->count,
            'seconds' => round($this->elapsed, 3),
            'cycles' => $this->cycles(),
            'cycles_per_second' => $this->elapsed > 0 ? round($this->cycles() / $this->elapsed, 1) : 0.0,
            'p50_ms' => $percentile(0.5),
            'p99_ms' => $percentile(0.99),
            'errors' => $this->errors,
            'first_error' => $this->firstError,
        ];
    }

    private function client(int $client, int $end, Cancellation $cancellation): void
    {
        $connection = null;
        for ($cycle = 1; hrtime(true) < $end; ++$cycle) {
            $start = hrtime(true);
            try {
                $connection ??= connect("tcp://{$this->address}", cancellation: $cancellation);
                $this->cycle($connection, "DEMO-{$client}-{$cycle}", $cancellation);
                $this->milliseconds[] = (hrtime(true) - $start) / 1e6;
            } catch (\Exception $failure) {
                $cancellation->throwIfRequested();
                ++$this->errors;
                $this->firstError ??= $failure->getMessage();
                $connection?->close();
                $connection = null;
            }
        }
        $connection?->close();
    }

    private function cycle(Socket $connection, string $number, Cancellation $cancellation): void
    {
        $cancellation = new CompositeCancellation(
            $cancellation,
            new TimeoutCancellation(self::TIMEOUT, 'The server did not answer within ' . self::TIMEOUT . ' s'),
        );
        $body = static fn(string $title): string => json_encode(
            ['number' => $number, 'title' => $title, 'serial_number' => 'MSN 4711', 'assembly_date' => '1998-04-30'],
            \JSON_THROW_ON_ERROR,
        );
        $this->ask($connection, 'POST', '/aircraft', $body('Airbus A320'), 201, $cancellation);
        $this->ask($connection, 'GET', "/aircraft/{$number}", '', 200, $cancellation);
        $this->ask($connection, 'PUT', "/aircraft/{$number}", $body('Airbus A320neo'), 200, $cancellation);
        $this->ask($connection, 'DELETE', "/aircraft/{$number}", '', 204, $cancellation);
    }

    /** @throws \RuntimeException when the answer has another status */
    private function ask(
        Socket $connection,
        string $method,
        string $target,
        string $body,
        int $status,
        Cancellation $cancellation,
    ): void {
        $fields = $body === '' ? '' : "Content-Type: application/json\r\nContent-Length: " . \strlen($body) . "\r\n";
        $connection->write("{$method} {$target} HTTP/1.1\r\nHost: {$this->address}\r\n{$fields}\r\n{$body}");
        $received = '';
        while (
            ($head = strpos($received, "\r\n\r\n")) === false
            || \strlen($received) < $head + 4 + self::length($received)
        ) {
            $received .= $connection->read($cancellation)
                ?? throw new \RuntimeException("The connection ended before {$method} {$target} was answered");
        }
        if (!str_starts_with($received, "HTTP/1.1 {$status} ")) {
            throw new \RuntimeException("{$method} {$target}: " . strtok($received, "\r\n"));
        }
    }

    private static function length(string $received): int
    {
        return preg_match('/\r\ncontent-length: (\d+)\r\n/i', $received, $match) === 1 ? (int) $match[1] : 0;
    }
}
