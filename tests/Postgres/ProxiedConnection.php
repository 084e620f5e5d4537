<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** A client's connection to a {@see FaultyProxy}, and the proxy's own connection to the server. */
final class ProxiedConnection
{
    /** @var array<string, int> bytes by direction */
    private array $passed = ['to server' => 0, 'to client' => 0];

    public function __construct(private readonly Wire $client, private readonly Wire $server) {}

    public function passed(Direction $direction): int
    {
        return $this->passed[$direction->value];
    }

    public function read(Direction $direction): string
    {
        return $this->source($direction)->read();
    }

    public function write(Direction $direction, string $bytes): void
    {
        $this->passed[$direction->value] += \strlen($bytes);
        $this->target($direction)->write($bytes);
    }

    /** Passes on that the source has closed its side. With `$silently`, the target does not notice. */
    public function end(Direction $direction, bool $silently): void
    {
        if ($silently) {
            $this->source($direction)->close();
        } elseif ($direction === Direction::ToClient) {
            $this->close(); // a server that has closed its side reads no more
        } else {
            $this->server->finish();
        }
    }

    public function isClosed(): bool
    {
        return $this->client->isClosed() && $this->server->isClosed();
    }

    public function close(): void
    {
        $this->client->close();
        $this->server->close();
    }

    public function reset(): void
    {
        $this->client->reset();
        $this->server->reset();
    }

    private function source(Direction $direction): Wire
    {
        return $direction === Direction::ToServer ? $this->client : $this->server;
    }

    private function target(Direction $direction): Wire
    {
        return $direction === Direction::ToServer ? $this->server : $this->client;
    }
}
