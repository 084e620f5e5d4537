<?php

declare(strict_types=1);

namespace Spindle\Bench\Contestant;

use Spindle\Bench\Support\Tally;
use Spindle\Bench\Support\Workload;

/** A class with the API of TaskRunner.php: Spindle's or the original. */
final readonly class TaskRunnerApi implements Contestant
{
    /** @param string|null $file the file that declares the class; null for the autoloader */
    public function __construct(
        private string $label,
        private string $class,
        private ?string $file = null,
    ) {}

    public function label(): string
    {
        return $this->label;
    }

    public function missing(): ?string
    {
        $there = $this->file === null ? class_exists($this->class) : is_file($this->file);

        return $there
            ? null
            : ($this->file === null ? "there is no class {$this->class}" : "there is no file '{$this->file}'");
    }

    public function run(Workload $workload, int $concurrency, Tally $tally): void
    {
        if ($this->file !== null) {
            require_once $this->file;
        }
        $runner = new ($this->class)($concurrency);
        [$add, $runAndWait] = [[$runner, 'add'], [$runner, 'runAndWait']];
        \assert(\is_callable($add) && \is_callable($runAndWait));
        foreach ($workload->lines() as $number => $line) {
            $add((string) $number, $line);
        }
        $runAndWait(static function (array $result) use ($tally): void {
            /** @var array{id: string, status: int, stdout: string} $result */
            $tally->result((int) $result['id'], $result['status'], $result['stdout']);
        });
    }
}
