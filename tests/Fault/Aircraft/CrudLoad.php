<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Aircraft;

use Amp\CancelledException;
use Amp\Future;
use Amp\TimeoutCancellation;
use Spindle\Tests\Async;
use Spindle\Tests\Http\RawClient;
use Spindle\Tests\Http\ReceivedResponse;

use function Amp\delay;

/** Clients that add, read, change and delete aircraft, and keep a journal of what they were told of each. */
final class CrudLoad
{
    /** Requests that were answered as they should be. */
    public int $acknowledged = 0;

    /** @var list<array{int, string}> when those requests were sent that were answered with 503, and the answers */
    public array $refused = [];

    /** @var list<string> answers that nobody should get */
    public array $wrong = [];

    /** @var array<int, list<string>> how it went for requests that had no answer, by the client */
    public array $unanswered = [];

    /** @var array<int, RawClient> by the client */
    public array $connections = [];

    /**
     * @var array<string, non-empty-list<string|null>> the titles that each aircraft may have; null where it may not be
     *                                                 there
     */
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

    /**
     * Returns when all requests are answered.
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
     * @param array<array-key, mixed> $titles of what is in the table, by number
     *
     * @return list<string> where that is not what clients were told
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
                delay(0.005); // a client that is refused does not come again at once
            }
        }
        $this->leave($client);

        return null;
    }

    /** @return bool whether it was acknowledged */
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

    /** @return ReceivedResponse|null null when there was none */
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
