<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Shell lines to run, and what each has to write to its standard output. */
final readonly class Workload
{
    /**
     * @param \Closure(int): string $line   by number, from 0
     * @param \Closure(int): string $output
     */
    private function __construct(
        public int $count,
        private \Closure $line,
        private \Closure $output,
    ) {}

    /**
     * @param string $tasks   command, echo or sleep
     * @param string $command the line that command stands for
     *
     * @throws UsageException when there are no such tasks, or the command fails
     */
    public static function of(string $tasks, string $command, int $count): self
    {
        return match ($tasks) {
            'command' => self::repeat($command, $count),
            'echo' => self::echoes($count),
            'sleep' => self::sleeps($count),
            default => throw new UsageException("option --tasks: '{$tasks}' is not allowed; give command, echo or sleep"),
        };
    }

    /**
     * The same line over and over; it is run once to learn its output, which has to be the same each time.
     *
     * @throws UsageException when it fails
     */
    public static function repeat(string $line, int $count): self
    {
        [$status, $output] = Program::run(['/bin/sh', '-c', $line]);
        if ($status !== 0) {
            throw new UsageException("option --command: '{$line}' fails with exit code {$status}; give a line that succeeds");
        }

        return new self($count, static fn(): string => $line, static fn(): string => $output);
    }

    /** TaskRunner.php's tasks: each echoes its number. */
    public static function echoes(int $count): self
    {
        return new self($count, static fn(int $i): string => "echo {$i}", static fn(int $i): string => "{$i}\n");
    }

    /** TaskRunner.php's other tasks: 1 to 10 ms of sleep in turn, then the number. */
    public static function sleeps(int $count): self
    {
        return new self(
            $count,
            static fn(int $i): string => \sprintf('sleep %s && echo %d', self::milliseconds($i) / 1000, $i),
            static fn(int $i): string => "{$i}\n",
        );
    }

    /** @return float the seconds that one of the sleeping tasks sleeps, on average */
    public static function meanSleep(int $count): float
    {
        return array_sum(array_map(self::milliseconds(...), range(0, $count - 1))) / $count / 1000;
    }

    /** @return \Generator<int, string> */
    public function lines(): \Generator
    {
        for ($i = 0; $i < $this->count; ++$i) {
            yield $i => ($this->line)($i);
        }
    }

    public function output(int $number): string
    {
        return ($this->output)($number);
    }

    /** @return int the length of all outputs together */
    public function bytes(): int
    {
        $bytes = 0;
        for ($i = 0; $i < $this->count; ++$i) {
            $bytes += \strlen(($this->output)($i));
        }

        return $bytes;
    }

    private static function milliseconds(int $number): int
    {
        return $number % 10 + 1;
    }
}
