<?php

declare(strict_types=1);

namespace Spindle\Bench\Aircraft;

use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Bench\Http\Processes;

/** The aircraft application, served by one contestant. */
final readonly class Served
{
    /** Maximum seconds to wait for an answer. Agents with idle priority are slow beside other processes. */
    private const TIMEOUT = 300;

    public Processes $processes;

    /**
     * Starts the processes, and waits for the first right answer.
     *
     * @param string                       $address  host:port
     * @param list<non-empty-list<string>> $commands commands of the processes
     * @param Agents|null                  $agents   agents that render its certificates
     *
     * @throws \RuntimeException when there is no answer, or a wrong one
     */
    public function __construct(
        public string $address,
        public PrivateDirectory $directory,
        array $commands,
        public ?Agents $agents = null,
    ) {
        $this->processes = new Processes($directory, $commands);
        $this->processes->await($this->isRight(...));
    }

    public function url(string $path = '/'): string
    {
        return "http://{$this->address}{$path}";
    }

    /** Returns whether the application finds an existing aircraft. */
    public function isRight(): bool
    {
        return str_contains($this->get('/aircraft/S-000001'), '"MSN 10001"');
    }

    /** @return string the body of a successful answer, else '' */
    public function get(string $path): string
    {
        $context = stream_context_create(['http' => ['timeout' => self::TIMEOUT]]);

        return (string) @file_get_contents($this->url($path), context: $context);
    }
}
