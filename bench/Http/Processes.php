<?php

declare(strict_types=1);

namespace Spindle\Bench\Http;

use Spindle\Bench\Support\Signals;

/** Processes that serve together; they end with this object at the latest. */
final readonly class Processes
{
    /** Seconds until they have to answer. */
    private const START = 15.0;

    private const LOOK = 0.01;

    private const LOG = 'server.log';

    /** @var list<Child> */
    private array $children;

    /** @param list<non-empty-list<string>> $commands */
    public function __construct(private PrivateDirectory $directory, array $commands)
    {
        $this->children = array_map(fn(array $command): Child => Signals::hold(fn(): Child => new Child($command, "{$directory->path}/" . self::LOG, $directory->path)), $commands);
    }

    /**
     * @param \Closure(): bool $isRight whether they answer as they have to
     *
     * @throws \RuntimeException when they do not in time, or when one of them ends
     */
    public function await(\Closure $isRight): void
    {
        $end = hrtime(true) + self::START * 1e9;
        while (!$isRight()) {
            $ended = array_filter($this->children, static fn(Child $child): bool => !$child->isRunning()) !== [];
            if ($ended || hrtime(true) > $end) {
                $this->stop();
                throw new \RuntimeException(($ended ? 'it ended at its start: ' : 'it does not answer as it has to: ') . trim($this->log()));
            }
            usleep((int) (self::LOOK * 1e6));
        }
    }

    /** @return string all that they have printed */
    public function log(): string
    {
        return (string) @file_get_contents("{$this->directory->path}/" . self::LOG);
    }

    /** @return list<int> */
    public function pids(): array
    {
        return array_merge(...array_map(static fn(Child $child): array => $child->tree->pids(), $this->children));
    }

    /** @return array<int, float> seconds of each process so far, user and system, by its id */
    public function cpu(): array
    {
        return array_replace([], ...array_map(static fn(Child $child): array => $child->tree->cpu(), $this->children));
    }

    /** @return int bytes of all processes now, what several share counted once */
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
