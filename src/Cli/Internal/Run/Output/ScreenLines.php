<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Output;

use Symfony\Component\Console\Cursor;
use Symfony\Component\Console\Output\BufferedOutput;
use Symfony\Component\Console\Output\OutputInterface;

/**
 * Draws lines below the output on a terminal, and redraws only those that have changed. Between two calls, the cursor
 * is at the beginning of the last line. Each line must be shorter than the width of the terminal, so that the terminal
 * does not wrap the line.
 */
final class ScreenLines
{
    private readonly BufferedOutput $output;
    private readonly Cursor $cursor;

    /** @var list<string> visible lines, with their colours */
    private array $lines = [];

    /** Whether the last byte of other output has left the cursor in the middle of a line. */
    private bool $isInLine = false;

    /** @param resource $input any stream, for the constructor of Cursor; nothing is read from this stream */
    public function __construct(mixed $input)
    {
        $this->output = new BufferedOutput(decorated: true);
        $this->cursor = new Cursor($this->output, $input);
    }

    /** Records that other output was written after {@see clear()}. */
    public function wrote(string $bytes): void
    {
        if ($bytes !== '') {
            $this->isInLine = !str_ends_with($bytes, "\n");
        }
    }

    /**
     * Returns the bytes that replace the visible lines with $lines.
     *
     * @param non-empty-list<string> $lines
     */
    public function draw(array $lines): string
    {
        if ($this->lines === []) {
            $this->raw(($this->isInLine ? "\r\n" : '') . implode("\r\n", $lines));
            $this->raw("\r");
        } else {
            $this->replace($lines);
        }
        $this->isInLine = false;
        $this->lines = $lines;

        return $this->output->fetch();
    }

    public function clear(): string
    {
        if ($this->lines === []) {
            return '';
        }
        $this->up(\count($this->lines) - 1);
        $this->lines = [];
        $this->cursor->clearOutput();

        return $this->output->fetch();
    }

    /**
     * Returns the bytes that remove the visible lines after the terminal has become narrower or wider. A narrower
     * terminal wraps lines that no longer fit, so that a line can occupy several rows.
     *
     * @param int<1, max> $columns new width
     */
    public function clearAfterResize(int $columns): string
    {
        $above = 0;
        foreach (\array_slice($this->lines, 0, -1) as $line) {
            $above += max(1, (int) ceil(ScreenStyle::width($line) / $columns));
        }
        $this->up($above);
        $hadLines = $this->lines !== [];
        $this->lines = [];
        if ($hadLines) {
            $this->cursor->clearOutput();
        }

        return $this->output->fetch();
    }

    /** Leaves the visible lines on the terminal. The caller must move the cursor below them before {@see draw()}. */
    public function leave(): void
    {
        $this->lines = [];
    }

    /** @param non-empty-list<string> $lines */
    private function replace(array $lines): void
    {
        $row = \count($this->lines) - 1;
        foreach ($lines as $i => $line) {
            if (($this->lines[$i] ?? null) === $line) {
                continue;
            }
            $this->down($i - $row);
            $row = $i;
            $this->raw($line);
            if (($this->lines[$i] ?? '') !== '') {
                $this->cursor->clearLineAfter();
            }
            $this->raw("\r");
        }
        $last = \count($lines) - 1;
        if ($last < \count($this->lines) - 1) {
            $this->down($last + 1 - $row);
            $this->cursor->clearOutput();
            $row = $last + 1;
        }
        $this->down($last - $row);
    }

    /** Moves the cursor down, or up if $rows is negative. In the last row, line feeds scroll; moveDown() does not. */
    private function down(int $rows): void
    {
        $rows < 0 ? $this->up(-$rows) : $this->raw(str_repeat("\n", $rows));
    }

    private function up(int $rows): void
    {
        if ($rows > 0) {
            $this->cursor->moveUp($rows);
        }
    }

    private function raw(string $bytes): void
    {
        $this->output->write($bytes, false, OutputInterface::OUTPUT_RAW);
    }
}
