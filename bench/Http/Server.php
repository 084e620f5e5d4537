<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

/** Processes that serve a site together. */
final readonly class Server
{
    private Processes $processes;

    /**
     * Returns when it has answered.
     *
     * @param list<non-empty-list<string>> $commands of the processes
     *
     * @throws \RuntimeException when it does not, or not what it has to
     */
    public function __construct(
        public Site $site,
        public PrivateDirectory $directory,
        array $commands,
    ) {
        $this->processes = new Processes($directory, $commands);
        $this->processes->await($this->isRight(...));
    }

    /** @return array<int, float> seconds of each process so far, user and system, by its id */
    public function cpu(): array
    {
        return $this->processes->cpu();
    }

    /** @return int bytes of all processes now, what several share counted once */
    public function memory(): int
    {
        return $this->processes->memory();
    }

    /** Whether it answers a request as it has to. */
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
