<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Http\Processes;
use Spindle\Bench\Http\Servers as HttpServers;

/** The database behind a {@see DelayLine}, which exists as long as this object. */
final readonly class FarDatabase
{
    public Endpoint $endpoint;

    private Processes $processes;

    /** @param float $delay seconds of a round trip */
    public function __construct(Endpoint $near, float $delay)
    {
        $directory = new PrivateDirectory();
        $this->endpoint = $near->at($directory->path);
        $this->processes = new Processes($directory, [[
            \PHP_BINARY, ...HttpServers::PHP_OPTIONS, '-d', 'opcache.enable_cli=1',
            __DIR__ . '/delay-line.php', $this->endpoint->socket(), $near->socket(), (string) $delay,
        ]]);
        $this->processes->await(fn(): bool => file_exists($this->endpoint->socket()));
    }

    /** @return float CPU seconds that the proxy has used so far */
    public function cpu(): float
    {
        return array_sum($this->processes->cpu());
    }

    public function close(): void
    {
        $this->processes->stop();
    }
}
