<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Shell lines to run, and the expected standard output of each. */
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
     * @param string $command the line to run for "command"
     *
     * @throws UsageException when the name is unknown, or the command fails
     */
    public static function of(string $tasks, string $command, int $count): self
    {
        return match ($tasks) {
            'command' => self::repeat($command, $count),
            'echo' => self::echoes($count),
            'sleep' => self::sleeps($count),
            default => throw new UsageException(
                "option --workload: '{$tasks}' is not allowed; give command, echo or sleep",
            ),
        };
    }

    /**
     * Repeats one line. A first run determines its output, which must be the same each time.
     *
     * @throws UsageException when it fails
     */
    public static function repeat(string $line, int $count): self
    {
        [$status, $output] = Program::run(['/bin/sh', '-c', $line]);
        if ($status !== 0) {
            throw new UsageException(
                "option --command: '{$line}' fails with exit code {$status}; give a line that succeeds",
            );
        }

        return new self($count, static fn(): string => $line, static fn(): string => $output);
    }

    /** Returns TaskRunner.php's tasks, which echo their number. */
    public static function echoes(int $count): self
    {
        return new self($count, static fn(int $i): string => "echo {$i}", static fn(int $i): string => "{$i}\n");
    }

    /** Returns TaskRunner.php's other tasks, which sleep 1 to 10 ms in turn, then echo their number. */
    public static function sleeps(int $count): self
    {
        return new self(
            $count,
            static fn(int $i): string => \sprintf('sleep %s && echo %d', self::milliseconds($i) / 1000, $i),
            static fn(int $i): string => "{$i}\n",
        );
    }

    /** @return float average seconds for which a task sleeps */
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

    /** @return int length of all outputs together */
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
