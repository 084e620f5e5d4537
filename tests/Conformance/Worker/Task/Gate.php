<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

use Spindle\Tests\Eventually;
use Spindle\Tests\Text;
use Spindle\Worker\TaskContext;

use function Amp\delay;

/** Where tasks wait for the test, wherever they run. */
final class Gate
{
    private const OPEN = 'open';

    public function __construct(private readonly string $directory)
    {
        mkdir($directory);
    }

    /**
     * For a task: says that it is there, and goes on when the gate is open.
     *
     * @param bool $ends whether it ends when its context says so
     */
    public function pass(string $name = 'task', bool $ends = false): string
    {
        $this->say($name);
        $cancellation = $ends ? TaskContext::current()->cancellation() : null;
        while (!is_file("{$this->directory}/" . self::OPEN)) {
            delay(0.001, cancellation: $cancellation);
            clearstatcache();
        }

        return $name;
    }

    /** For a task: says that it is there. */
    public function say(string $name): string
    {
        touch("{$this->directory}/{$name}");

        return $name;
    }

    /** @return list<string> who has been there */
    public function names(): array
    {
        return array_values(array_diff(Text::names($this->directory), [self::OPEN]));
    }

    /** Until so many tasks were there. */
    public function awaitTasks(int $count): void
    {
        Eventually::holds(fn(): bool => \count($this->names()) >= $count, "{$count} tasks have started");
    }

    public function open(): void
    {
        touch("{$this->directory}/" . self::OPEN);
    }
}
