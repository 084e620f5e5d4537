<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

use Spindle\Tests\Eventually;
use Spindle\Tests\Text;
use Spindle\Worker\TaskContext;

use function Amp\delay;

/** Lets tasks in any process wait for the test. */
final class Gate
{
    private const OPEN = 'open';

    public function __construct(private readonly string $directory)
    {
        mkdir($directory);
    }

    /**
     * Reports the task, and waits until the gate is open.
     *
     * @param bool $ends whether a cancellation of the task ends the wait
     */
    public function pass(string $name = 'task', bool $ends = false): string
    {
        // Asked for before the report: a test may cancel at once, and a task that has not asked is ended without it.
        $cancellation = $ends ? TaskContext::current()->cancellation() : null;
        $this->say($name);
        while (!is_file("{$this->directory}/" . self::OPEN)) {
            delay(0.001, cancellation: $cancellation);
            clearstatcache();
        }

        return $name;
    }

    /** Reports the task, without a wait. */
    public function say(string $name): string
    {
        touch("{$this->directory}/{$name}");

        return $name;
    }

    /** @return list<string> names of reported tasks */
    public function names(): array
    {
        return array_values(array_diff(Text::names($this->directory), [self::OPEN]));
    }

    /** Waits until this many tasks were reported. */
    public function awaitTasks(int $count): void
    {
        Eventually::holds(fn(): bool => \count($this->names()) >= $count, "{$count} tasks have started");
    }

    public function open(): void
    {
        touch("{$this->directory}/" . self::OPEN);
    }
}
