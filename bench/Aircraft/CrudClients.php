<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

/**
 * Clients that repeatedly add, read, change and delete an aircraft, and check each answer.
 *
 * One process with one stream_select() serves all clients, because they share a core with the database. wrk needs a
 * thread per independent client, and three times the CPU time.
 *
 * @phpstan-type Figures array{
 *     cycles: int,
 *     requests: int,
 *     seconds: float,
 *     p50: float,
 *     p99: float,
 *     p999: float,
 *     longest: float,
 *     errors: array<string, int>,
 * }
 */
final class CrudClients
{
    /** Steps of a cycle: method and expected status. */
    private const STEPS = [['POST', 201], ['GET', 200], ['PUT', 200], ['DELETE', 204]];

    /** Timeout for an answer, in seconds. */
    private const TIMEOUT = 60;

    /** @var array<int, resource> connections of the clients that are not finished */
    private array $streams = [];

    /** @var array<int, int<0, 3>> */
    private array $steps = [];

    /** @var array<int, int> */
    private array $completed = [];

    /** @var array<int, int> time of the request, in nanoseconds of hrtime() */
    private array $sent = [];

    /** @var array<int, string> bytes of the answer */
    private array $received = [];

    /** @var list<int> in nanoseconds */
    private array $latencies = [];

    /** @var array<string, int> */
    private array $errors = [];

    /**
     * @param string $tag     prefix of the aircraft's numbers
     * @param int    $cycles  cycles per client; 0 for no limit
     * @param float  $seconds time limit
     */
    public function __construct(
        private readonly string $address,
        private readonly string $tag,
        private readonly int $clients,
        private readonly int $cycles,
        private readonly float $seconds,
    ) {}

    /** @return Figures latencies in milliseconds; seconds from the first request to the last answer */
    public function run(): array
    {
        for ($i = 0; $i < $this->clients; ++$i) {
            [$this->steps[$i], $this->completed[$i]] = [0, 0];
            $this->connect($i);
        }
        $begun = $ended = hrtime(true);
        array_map($this->send(...), array_keys($this->streams));
        while ($this->streams !== [] && hrtime(true) - $begun < $this->seconds * 1e9) {
            [$read, $write, $except] = [$this->streams, null, null];
            if (stream_select($read, $write, $except, self::TIMEOUT) === 0) {
                $this->countFault('no answer in ' . self::TIMEOUT . ' seconds', \count($this->streams));
                break;
            }
            foreach (array_keys($read) as $i) {
                $this->receive($i);
            }
            $ended = hrtime(true);
        }

        return $this->figures(($ended - $begun) / 1e9);
    }

    private function connect(int $i): void
    {
        $stream = @stream_socket_client("tcp://{$this->address}", $code, $message, self::TIMEOUT);
        if ($stream === false) {
            throw new \RuntimeException("Client {$i} could not connect: {$message}");
        }
        stream_set_blocking($stream, false);
        stream_set_read_buffer($stream, 0);
        [$this->streams[$i], $this->received[$i]] = [$stream, ''];
    }

    private function send(int $i): void
    {
        $number = $this->number($i);
        $request = match ($this->steps[$i]) {
            0 => $this->withBody('POST /aircraft', "{\"number\":\"{$number}\",{$this->fields($i)}}"),
            2 => $this->withBody("PUT /aircraft/{$number}", "{{$this->fields($i)}}"),
            default => self::STEPS[$this->steps[$i]][0]
                . " /aircraft/{$number} HTTP/1.1\r\nHost: {$this->address}\r\n\r\n",
        };
        $this->sent[$i] = (int) hrtime(true);
        if (fwrite($this->streams[$i], $request) !== \strlen($request)) {
            $this->countFault('a request could not be sent');
        }
    }

    private function withBody(string $line, string $body): string
    {
        return "{$line} HTTP/1.1\r\nHost: {$this->address}\r\nContent-Type: application/json\r\nContent-Length: "
            . \strlen($body)
            . "\r\n\r\n{$body}";
    }

    private function receive(int $i): void
    {
        $bytes = fread($this->streams[$i], 65_536);
        if ($bytes === '' || $bytes === false) {
            $this->countFault('a connection was lost');
            $this->connect($i);
            $this->send($i);

            return;
        }
        $answer = $this->received[$i] .= $bytes;
        if (!HttpAnswer::isComplete($answer)) {
            return;
        }
        $this->received[$i] = '';
        $this->latencies[] = hrtime(true) - $this->sent[$i];
        [$method, $status] = self::STEPS[$this->steps[$i]];
        if (strncmp($answer, "HTTP/1.1 {$status} ", 13) !== 0) {
            $this->countFault("{$method} answered " . substr($answer, 9, 3));
        } elseif ($status !== 204 && !str_contains($answer, "\"number\":\"{$this->number($i)}\",{$this->fields($i)}")) {
            $this->countFault("{$method} with a wrong body");
        }
        $this->steps[$i] = ($this->steps[$i] + 1) % 4;
        if ($this->steps[$i] === 0 && ++$this->completed[$i] === $this->cycles) {
            fclose($this->streams[$i]);
            unset($this->streams[$i]);

            return;
        }
        $this->send($i);
    }

    private function number(int $i): string
    {
        return "{$this->tag}-{$i}-{$this->completed[$i]}";
    }

    private function fields(int $i): string
    {
        $title = $this->steps[$i] < 2 ? 'Airbus A320' : 'Airbus A320neo';

        return "\"title\":\"{$title}\",\"serial_number\":\"MSN {$i}\",\"assembly_date\":\"1998-04-30\"";
    }

    private function countFault(string $kind, int $count = 1): void
    {
        $this->errors[$kind] = ($this->errors[$kind] ?? 0) + $count;
    }

    /** @return Figures */
    private function figures(float $seconds): array
    {
        sort($this->latencies);
        $requests = \count($this->latencies);
        $share = fn(float $share): float
            => $requests === 0 ? 0.0 : $this->latencies[max(0, (int) ceil($requests * $share) - 1)] / 1e6;

        return [
            'cycles' => array_sum($this->completed), 'requests' => $requests, 'seconds' => $seconds,
            'p50' => $share(0.5), 'p99' => $share(0.99), 'p999' => $share(0.999), 'longest' => $share(1.0),
            'errors' => $this->errors,
        ];
    }
}
