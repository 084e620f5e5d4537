<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Usage;

/** Measures elapsed time, CPU time of this process and its children, and CPU time of the server. */
final readonly class Meter
{
    private function __construct(
        private ServerTime $serverTime,
        private ?float $server,
        private float $client,
        private int $begin,
    ) {}

    public static function start(Target $target): self
    {
        $serverTime = new ServerTime($target->postmaster);

        return new self($serverTime, $serverTime->seconds(), Usage::now()->cpu, (int) hrtime(true));
    }

    /** @return float seconds since the start */
    public function seconds(): float
    {
        return (hrtime(true) - $this->begin) / 1e9;
    }

    /** @return array{seconds: float, cpu: float, server: float|null} values since the start */
    public function read(): array
    {
        [$seconds, $client, $server] = [$this->seconds(), Usage::now()->cpu, $this->serverTime->seconds()];

        return [
            'seconds' => $seconds,
            'cpu' => $client - $this->client,
            'server' => $server === null || $this->server === null ? null : $server - $this->server,
        ];
    }
}
