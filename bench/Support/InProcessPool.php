<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/**
 * The common process pool of PHP applications: `proc_open` in the calling process.
 *
 * Output is awaited with `stream_select`. Most such pools sleep and poll, and are slower.
 */
final class InProcessPool
{
    private const DESCRIPTORS = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']];

    /** @var array<int, resource> by the command's number */
    private array $processes = [];

    /** @var array<int, resource> open pipes; the key is four times the command's number plus the descriptor */
    private array $pipes = [];

    /** @var array<int, string> by the keys of the pipes */
    private array $outputs = [];

    /** @param \Closure(int, int, string, string): void $ended number, exit code, stdout, stderr */
    public function __construct(
        private readonly int $concurrency,
        private readonly \Closure $ended,
    ) {}

    /** @param iterable<int, string> $lines */
    public function run(iterable $lines): void
    {
        foreach ($lines as $number => $line) {
            while (\count($this->processes) >= $this->concurrency) {
                $this->wait();
            }
            $this->start($number, $line);
        }
        while ($this->processes !== []) {
            $this->wait();
        }
    }

    private function start(int $number, string $line): void
    {
        $process = proc_open($line, self::DESCRIPTORS, $pipes);
        if ($process === false) {
            throw new \RuntimeException("'{$line}' could not be started");
        }
        $this->processes[$number] = $process;
        foreach ($pipes as $descriptor => $pipe) {
            stream_set_blocking($pipe, false);
            $this->pipes[4 * $number + $descriptor] = $pipe;
            $this->outputs[4 * $number + $descriptor] = '';
        }
    }

    private function wait(): void
    {
        [$ready, $none] = [$this->pipes, null];
        stream_select($ready, $none, $none, null);
        foreach ($ready as $key => $pipe) {
            $this->outputs[$key] .= stream_get_contents($pipe);
            if (feof($pipe)) {
                fclose($pipe);
                unset($this->pipes[$key]);
                $this->end(intdiv($key, 4));
            }
        }
    }

    private function end(int $number): void
    {
        [$stdout, $stderr] = [4 * $number + 1, 4 * $number + 2];
        if (isset($this->pipes[$stdout]) || isset($this->pipes[$stderr])) {
            return;
        }
        // The exit usually follows the end of both outputs at once.
        $exitCode = proc_close($this->processes[$number]);
        $outputs = [$this->outputs[$stdout], $this->outputs[$stderr]];
        unset($this->processes[$number], $this->outputs[$stdout], $this->outputs[$stderr]);
        ($this->ended)($number, $exitCode, ...$outputs);
    }
}
