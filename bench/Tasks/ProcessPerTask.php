<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

/**
 * The method of Pumice: one PHP process per task. The task is passed as base64 on the command line, and its result is
 * printed as base64.
 */
final class ProcessPerTask implements TaskPool
{
    /** @var array<int, resource> */
    private array $processes = [];

    /** @var array<int, resource> */
    private array $outputs = [];

    public function __construct(private readonly int $concurrency) {}

    public function each(iterable $inputs, callable $task, \Closure $take): void
    {
        foreach ($inputs as $input) {
            while (\count($this->processes) >= $this->concurrency) {
                $this->wait($take);
            }
            $this->start(new Call($task, $input));
        }
        while ($this->processes !== []) {
            $this->wait($take);
        }
    }

    public function close(): void {}

    /** @param Call<mixed> $call */
    private function start(Call $call): void
    {
        $process = proc_open(
            [\PHP_BINARY, \dirname(__DIR__) . '/process-per-task.php', base64_encode(serialize($call))],
            [1 => ['pipe', 'w']],
            $pipes,
        );
        if ($process === false || !isset($pipes[1])) {
            throw new \RuntimeException('Could not start a process');
        }
        $this->processes[] = $process;
        $this->outputs[array_key_last($this->processes)] = $pipes[1];
    }

    /** @param \Closure(mixed): void $take */
    private function wait(\Closure $take): void
    {
        [$readable, $none] = [$this->outputs, []];
        stream_select($readable, $none, $none, null);
        foreach (array_keys($readable) as $number) {
            $output = (string) stream_get_contents($this->outputs[$number]);
            proc_close($this->processes[$number]);
            unset($this->processes[$number], $this->outputs[$number]);
            $take(unserialize((string) base64_decode($output, true)));
        }
    }
}
