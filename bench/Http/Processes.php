<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Signals;

/** Processes that serve together. The destructor ends them. */
final readonly class Processes
{
    /** Seconds after which the processes must answer. */
    private const START_TIMEOUT = 15.0;

    private const POLL_INTERVAL = 0.01;

    private const LOG = 'server.log';

    /** @var list<Child> */
    private array $children;

    /** @param list<non-empty-list<string>> $commands */
    public function __construct(private PrivateDirectory $directory, array $commands)
    {
        $this->children = array_map(
            fn(array $command): Child
                => Signals::withoutInterruption(
                    fn(): Child => new Child($command, "{$directory->path}/" . self::LOG, $directory->path),
                ),
            $commands,
        );
    }

    /**
     * Waits until the processes answer.
     *
     * @param \Closure(): bool $isRight whether the answer is right
     *
     * @throws \RuntimeException when there is no right answer in time, or when a process ends
     */
    public function await(\Closure $isRight): void
    {
        $end = hrtime(true) + self::START_TIMEOUT * 1e9;
        while (!$isRight()) {
            $ended = array_filter($this->children, static fn(Child $child): bool => !$child->isRunning()) !== [];
            if ($ended || hrtime(true) > $end) {
                $this->stop();
                throw new \RuntimeException(
                    ($ended ? 'it ended at its start: ' : 'it does not answer as expected: ') . trim($this->log()),
                );
            }
            usleep((int) (self::POLL_INTERVAL * 1e6));
        }
    }

    /** @return string their whole output */
    public function log(): string
    {
        return (string) @file_get_contents("{$this->directory->path}/" . self::LOG);
    }

    /** @return list<int> */
    public function pids(): array
    {
        return array_merge(...array_map(static fn(Child $child): array => $child->tree->pids(), $this->children));
    }

    /** @return array<int, float> user and system seconds so far, by process id */
    public function cpu(): array
    {
        return array_replace([], ...array_map(static fn(Child $child): array => $child->tree->cpu(), $this->children));
    }

    /** @return int current bytes of all processes; shared memory counts once */
    public function memory(): int
    {
        return ProcessTree::memoryOf($this->pids());
    }

    public function stop(): void
    {
        foreach ($this->children as $child) {
            $child->stop();
        }
    }
}
