<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Processes that serve a site together. */
final readonly class Server
{
    private Processes $processes;

    /**
     * Starts the processes, and waits for the first right answer.
     *
     * @param list<non-empty-list<string>> $commands commands of the processes
     *
     * @throws \RuntimeException when there is no answer, or a wrong one
     */
    public function __construct(
        public Site $site,
        public PrivateDirectory $directory,
        array $commands,
    ) {
        $this->processes = new Processes($directory, $commands);
        $this->processes->await($this->isRight(...));
    }

    /** @return array<int, float> user and system seconds so far, by process id */
    public function cpu(): array
    {
        return $this->processes->cpu();
    }

    /** @return int current bytes of all processes; shared memory counts once */
    public function memory(): int
    {
        return $this->processes->memory();
    }

    /** Returns whether the server gives the right answer to a request. */
    public function isRight(): bool
    {
        try {
            return (new Connection($this->site))->isAnswered(Work::FIRST_NUMBER);
        } catch (\RuntimeException) {
            return false;
        }
    }

    public function stop(): void
    {
        $this->processes->stop();
    }
}
