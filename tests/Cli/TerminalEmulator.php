<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

/** A terminal that interprets the few escape sequences which `spindle run` writes, and throws for any other. */
final class TerminalEmulator
{
    /**
     * Characters of all lines, also of those that have scrolled out, each with the parameters of its style (SGR).
     *
     * @var list<list<array{string, string}>>
     */
    private array $lines = [[]];
    private string $style = '';
    private int $row = 0;
    private int $column = 0;

    /** Bytes at the end that are not a complete character or sequence. */
    private string $rest = '';

    public function __construct(private int $columns, private int $rows) {}

    public function feed(string $bytes): void
    {
        $this->rest .= $bytes;
        while ($this->rest !== '') {
            if (preg_match('/^\e\[([\d;?]*)([A-Za-z])/', $this->rest, $match) === 1) {
                $this->sequence($match[2], $match[1]);
            } elseif (preg_match('/^[\r\n\x07\x08]/', $this->rest, $match) === 1) {
                $this->control($match[0]);
            } elseif (preg_match('/^[^\x00-\x1f\x7f-\xff]|^[\xc0-\xff][\x80-\xbf]+/', $this->rest, $match) === 1) {
                if (\strlen($match[0]) === \strlen($this->rest) && preg_match('//u', $match[0]) !== 1) {
                    return;
                }
                $this->character($match[0]);
            } elseif (preg_match('/^(\e\[?[\d;?]*|[\xc0-\xff])$/D', $this->rest) === 1) {
                return;
            } else {
                throw new \UnexpectedValueException('Unknown: ' . addcslashes($this->rest, "\0..\37\177..\377"));
            }
            $this->rest = substr($this->rest, \strlen($match[0]));
        }
    }

    public function resize(int $columns, int $rows): void
    {
        [$this->columns, $this->rows] = [$columns, $rows];
    }

    /** Returns all lines, also those that have scrolled out, without blanks at their ends. */
    public function text(): string
    {
        return self::joined($this->lines);
    }

    /** Returns the visible lines. */
    public function screen(): string
    {
        return self::joined($this->styledScreen());
    }

    /** @return list<list<array{string, string}>> characters of the visible lines, each with its style: '' or as '31' */
    public function styledScreen(): array
    {
        return \array_slice($this->lines, $this->top());
    }

    private function top(): int
    {
        return max(0, \count($this->lines) - $this->rows);
    }

    private function character(string $character): void
    {
        $width = max(1, mb_strwidth($character));
        if ($this->column + $width > $this->columns) {
            $this->control("\n");
            $this->column = 0;
        }
        $line = array_pad($this->lines[$this->row], $this->column, [' ', '']);
        $cells = [[$character, $this->style], ...array_fill(0, $width - 1, ['', $this->style])];
        array_splice($line, $this->column, $width, $cells);
        $this->lines[$this->row] = $line;
        $this->column += $width;
    }

    private function control(string $character): void
    {
        if ($character === "\r") {
            $this->column = 0;
        } elseif ($character === "\n") {
            $this->lines[++$this->row] ??= [];
        }
    }

    private function sequence(string $letter, string $parameters): void
    {
        $number = max(1, (int) $parameters);
        match ($letter) {
            'A' => $this->row = max($this->top(), $this->row - $number),
            'K' => $this->lines[$this->row] = \array_slice($this->lines[$this->row], 0, $this->column),
            'J' => $this->clearBelow(),
            'm' => $this->style = ltrim($parameters, '0'),
            default => throw new \UnexpectedValueException("Unknown sequence: ESC[{$parameters}{$letter}"),
        };
    }

    private function clearBelow(): void
    {
        $this->lines[$this->row] = \array_slice($this->lines[$this->row], 0, $this->column);
        for ($row = $this->row + 1; $row < \count($this->lines); ++$row) {
            $this->lines[$row] = [];
        }
    }

    /** @param list<list<array{string, string}>> $lines */
    private static function joined(array $lines): string
    {
        $texts = array_map(static fn(array $line): string => rtrim(implode('', array_column($line, 0))), $lines);

        return rtrim(implode("\n", $texts));
    }
}
