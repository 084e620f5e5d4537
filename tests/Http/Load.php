<?php

declare(strict_types=1);

namespace Spindle\Tests\Http;

use Amp\Future;
use Spindle\Tests\Async;

use function Amp\delay;

/** Clients that send requests in a loop, each in a fiber, and record the outcome of each numbered request. */
final class Load
{
    /** @var array<int, string> bodies of the answers, by the request */
    public array $answered = [];

    /** @var array<int, string> outcomes of requests on reused connections that ended before a response */
    public array $lostOnKept = [];

    /** @var array<int, string> outcomes of requests on reused connections that ended before a response */
    public array $failed = [];

    /** Number of refused connections. A client ends when its connection is refused. */
    public int $refused = 0;

    private int $asked = 0;
    private bool $stopping = false;

    /** @var list<Future<null>> */
    private array $clients = [];

    public function __construct(private readonly string $address) {}

    /**
     * @param bool  $keep  whether they keep their connections
     * @param float $pause seconds between a response and the next request
     */
    public function start(int $clients, bool $keep, float $pause = 0.0): void
    {
        for ($i = 0; $i < $clients; ++$i) {
            $this->clients[] = Async::run(fn() => $this->ask($keep, $pause));
        }
    }

    /** Stops new requests, and waits until all requests are answered. */
    public function stop(): void
    {
        $this->stopping = true;
        $this->end();
    }

    /** Waits until all clients have ended. */
    public function end(): void
    {
        foreach ($this->clients as $client) {
            $client->await();
        }
    }

    private function ask(bool $keep, float $pause): null
    {
        $connection = null;
        while (!$this->stopping) {
            $isNew = $connection === null;
            try {
                $connection ??= RawClient::connect($this->address);
            } catch (\RuntimeException) {
                ++$this->refused;

                return null;
            }
            if (!$this->askOnce($connection, $isNew) || !$keep) {
                $connection->close();
                $connection = null;
            }
            delay($pause);
        }
        $connection?->close();

        return null;
    }

    /** @return bool whether the connection can be used again */
    private function askOnce(RawClient $connection, bool $isNew): bool
    {
        $id = ++$this->asked;
        try {
            $response = $connection->get("/?id={$id}")->response();
            $response->status === 200 ? $this->answered[$id] = $response->body : $this->failed[$id] = $response->head;

            return $response->keepsConnection();
        } catch (\RuntimeException $failure) {
            $why = "{$failure->getMessage()} {$connection->warning()}";
            $hadNothing = str_contains($failure->getMessage(), 'had come, after: ')
                && str_ends_with($failure->getMessage(), 'after: ');
            !$isNew && $hadNothing
                ? $this->lostOnKept[$id] = $why
                : $this->failed[$id] = ($isNew ? 'new: ' : 'kept: ') . $why;

            return false;
        }
    }
}
