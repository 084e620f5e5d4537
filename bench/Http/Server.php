<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Signals;

/** Processes that serve a site together. */
final readonly class Server
{
    /** Seconds until it has to answer. */
    private const START = 15.0;

    private const LOOK = 0.01;

    private const LOG = 'server.log';

    /** @var list<Child> */
    private array $children;

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
        $this->children = array_map(fn(array $command): Child => Signals::hold(fn(): Child => new Child($command, "{$directory->path}/" . self::LOG, $directory->path)), $commands);
        $this->awaitAnswer();
    }

    /** @return array<int, float> seconds of each process so far, user and system, by its id */
    public function cpu(): array
    {
        return array_replace([], ...array_map(static fn(Child $child): array => $child->tree->cpu(), $this->children));
    }

    /** @return int bytes of all processes now, what several share counted once */
    public function memory(): int
    {
        return array_sum(array_map(static fn(Child $child): int => $child->tree->memory(), $this->children));
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
        foreach ($this->children as $child) {
            $child->stop();
        }
    }

    /** @throws \RuntimeException */
    private function awaitAnswer(): void
    {
        $end = hrtime(true) + self::START * 1e9;
        while (!$this->isRight()) {
            $ended = array_filter($this->children, static fn(Child $child): bool => !$child->isRunning()) !== [];
            if ($ended || hrtime(true) > $end) {
                $this->stop();
                throw new \RuntimeException(($ended ? 'it ended at its start: ' : 'it does not answer as it has to: ') . trim((string) @file_get_contents("{$this->directory->path}/" . self::LOG)));
            }
            usleep((int) (self::LOOK * 1e6));
        }
    }
}
