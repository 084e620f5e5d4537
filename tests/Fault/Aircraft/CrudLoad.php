<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ReceivedResponse;

use function Amp\delay;

/** Clients that add, read, change and delete aircraft, and record what the answers promise for each one. */
final class CrudLoad
{
    /** Number of requests with the expected answer. */
    public int $acknowledged = 0;

    /** @var list<array{int, string}> hrtime() when a request was sent that got a 503, and the answer */
    public array $refused = [];

    /** @var list<string> answers that are neither expected nor a refusal, with their requests */
    public array $wrong = [];

    /** @var array<int, list<string>> requests without an answer and their errors, by client */
    public array $unanswered = [];

    /** @var array<int, RawClient> by client */
    public array $connections = [];

    /** @var array<string, non-empty-list<string|null>> titles that each aircraft may have; null if it may be absent */
    private array $may = [];

    private bool $stopping = false;

    /** @var list<Future<null>> */
    private array $clients = [];

    public function __construct(private readonly string $address) {}

    public function start(int $clients): void
    {
        for ($i = 0; $i < $clients; ++$i) {
            $this->clients[] = Async::run(fn() => $this->client($i));
        }
    }

    /** Waits until ten more requests of each client, on average, have the expected answer. */
    public function awaitMore(): void
    {
        $goal = $this->acknowledged + 10 * \count($this->clients);
        Eventually::holds(fn(): bool => $this->acknowledged >= $goal, 'clients write', 30);
    }

    /**
     * Waits until all requests are answered.
     *
     * @throws CancelledException when that takes longer than a minute
     */
    public function stop(): void
    {
        $this->stopping = true;
        $deadline = new TimeoutCancellation(60, 'Clients have no answers to their last requests');
        foreach ($this->clients as $client) {
            $client->await($deadline);
        }
    }

    /**
     * @param array<array-key, mixed> $titles titles in the table, by number
     *
     * @return list<string> where the table contradicts the answers
     */
    public function contradictions(array $titles): array
    {
        $found = [];
        foreach ($this->may as $number => $may) {
            if (!\in_array($titles[$number] ?? null, $may, true)) {
                $found[] = "{$number} is " . json_encode($titles[$number] ?? null) . ' and may be ' . json_encode($may);
            }
        }
        foreach (array_diff_key($titles, $this->may) as $number => $_) {
            $found[] = "{$number} was added by nobody";
        }

        return $found;
    }

    private function client(int $client): null
    {
        for ($turn = 0; !$this->stopping; ++$turn) {
            $number = "N{$client}-{$turn}";
            $this->may[$number] = [null];
            $went = $this->change($client, $number, 'POST', '/aircraft', 'added', 201)
                && $this->read($client, $number)
                && $this->change($client, $number, 'PUT', "/aircraft/{$number}", 'changed', 200)
                && ($turn % 2 === 0 || $this->change($client, $number, 'DELETE', "/aircraft/{$number}", null, 204));
            if (!$went) {
                delay(0.005); // a refused client does not retry at once
            }
        }
        $this->leave($client);

        return null;
    }

    /** @return bool whether the change was acknowledged */
    private function change(
        int $client,
        string $number,
        string $method,
        string $target,
        ?string $title,
        int $status,
    ): bool {
        $body = $title === null
            ? ''
            : json_encode(['number' => $number, 'title' => $title, 'serial_number' => $number], \JSON_THROW_ON_ERROR);
        $answer = $this->ask($client, $method, $target, $body, $status);
        if ($answer?->status === $status) {
            $this->may[$number] = [$title];

            return true;
        }
        if ($answer === null || !str_contains($answer->body, 'nothing was changed')) {
            $this->may[$number][] = $title;
        }

        return false;
    }

    private function read(int $client, string $number): bool
    {
        $answer = $this->ask($client, 'GET', "/aircraft/{$number}", '', 200);
        if ($answer?->status === 200 && !str_contains($answer->body, '"title":"added"')) {
            $this->wrong[] = "{$number} was not as it was written: {$answer->body}";
        }

        return $answer?->status === 200;
    }

    /** @return ReceivedResponse|null null without an answer */
    private function ask(int $client, string $method, string $target, string $body, int $status): ?ReceivedResponse
    {
        $sent = (int) hrtime(true);
        try {
            $connection = $this->connections[$client] ??= RawClient::connect($this->address);
            $answer = $connection->request(
                $method,
                $target,
                $body === '' ? '' : "Content-Type: application/json\r\n",
                $body,
            )->response();
        } catch (\RuntimeException $failure) {
            $this->unanswered[$client][] = "{$method} {$target}: {$failure->getMessage()}";
            $this->leave($client);

            return null;
        }
        if (!$answer->keepsConnection()) {
            $this->leave($client);
        }
        $isRefusal = $answer->status === 503
            && $answer->header('retry-after') !== null
            && $answer->header('content-type') === 'application/problem+json';
        match (true) {
            $answer->status === $status => ++$this->acknowledged,
            $isRefusal => $this->refused[] = [$sent, "{$method} {$target}: {$answer->body}"],
            default => $this->wrong[] = "{$method} {$target}: {$answer->head} {$answer->body}",
        };

        return $answer;
    }

    private function leave(int $client): void
    {
        ($this->connections[$client] ?? null)?->close();
        unset($this->connections[$client]);
    }
}
