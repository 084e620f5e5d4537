<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

/**
 * Prints the progress of a run. On a terminal, each running class has one changing line. Elsewhere, each ended class is
 * one line. Failures are printed as they happen.
 */
final class Screen
{
    private const WIDTH = 100;
    private const REDRAW_NS = 200_000_000;

    private int $lines = 0;
    private int $drawn = 0;

    /** @param resource $stream */
    private function __construct(
        private $stream,
        private readonly bool $isTerminal,
        private readonly bool $hasColors,
    ) {}

    public static function onStandardOutput(): self
    {
        $isTerminal = stream_isatty(STDOUT);

        return new self(STDOUT, $isTerminal, $isTerminal && getenv('NO_COLOR') === false);
    }

    public function line(string $text): void
    {
        $this->erase();
        fwrite($this->stream, "{$text}\n");
    }

    public function classEnded(ClassResult $result, int $ended, int $all): void
    {
        $name = $result->class->name();
        $tests = $result->counts->tests;
        $line = \sprintf('%4d/%d %6.1f s  %s (%d tests)', $ended, $all, $result->seconds, $name, $tests);
        if (!$result->passed()) {
            $this->line($this->coloured("{$line}: FAILED", '31'));
            $this->line("{$result->problem}\n" . trim("{$result->output}\n{$result->errors}") . "\n");
        } elseif (!$this->isTerminal) {
            $this->line($line);
        }
    }

    /** @param list<ClassRun> $runs */
    public function progress(array $runs, int $ended, int $all, int $failed): void
    {
        if (!$this->isTerminal || hrtime(true) - $this->drawn < self::REDRAW_NS) {
            return;
        }
        $this->erase();
        $lines = [\sprintf('%d of %d classes, %d failed', $ended, $all, $failed)];
        foreach ($runs as $run) {
            [$begun, $test] = $run->progress();
            $name = $test === '' ? $run->class->name() : str_replace('Spindle\\Tests\\', '', $test);
            $lines[] = \sprintf('%5.1f s  %d/%d  %s', $run->seconds(), $begun, $run->class->tests, $name);
        }
        foreach ($lines as $line) {
            fwrite($this->stream, substr($line, 0, self::WIDTH) . "\n");
        }
        $this->lines = \count($lines);
        $this->drawn = hrtime(true);
    }

    public function verdict(string $line, bool $passed): void
    {
        $this->line($this->coloured($line, $passed ? '30;42' : '37;41'));
    }

    private function erase(): void
    {
        if ($this->lines > 0) {
            fwrite($this->stream, "\e[{$this->lines}A\e[J");
            $this->lines = 0;
        }
    }

    private function coloured(string $text, string $colour): string
    {
        return $this->hasColors ? "\e[{$colour}m{$text}\e[0m" : $text;
    }
}
