<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;
use Spindle\Command\Command;

/**
 * A shell line. Each inserted value is quoted as its place in the line requires. A list is a replacement string that
 * stands for all values of a job, such as {}.
 */
final class ShellTemplate implements TemplateBody
{
    /** @var non-empty-list<list<string|QuotedPlace>> the line; with $repeatsWords, each word with {} is a piece */
    private readonly array $pieces;

    /**
     * @param bool $repeatsWords     whether a word with a list is repeated for each value of the job (-X, -N, -L)
     * @param bool $hasSeveralValues whether a job can have several values
     *
     * @throws UsageException when a shell could run a value as code
     */
    public function __construct(
        string $line,
        ReplacementStrings $strings,
        private readonly bool $repeatsWords,
        bool $hasSeveralValues,
    ) {
        $parts = $strings->split($line);
        [$quotes, $isAtArgument] = self::scan($parts, $hasSeveralValues);
        $places = [];
        foreach ($parts as $i => $part) {
            $places[] = \is_string($part) ? $part : new QuotedPlace(
                $part,
                $quotes[$i >> 1],
                $isAtArgument[$i >> 1],
                $parts,
                $i,
            );
        }
        $this->pieces = $repeatsWords ? RepeatedWords::split($places) : [$places];
    }

    public function command(array $values, int $sequence, string $slot): Command
    {
        return Command::shell($this->text($values, $sequence, $slot));
    }

    public function text(array $values, int $sequence, string $slot): string
    {
        $line = '';
        foreach ($this->pieces as $piece) {
            if (\count($values) > 1 && $this->repeatsWords && self::hasList($piece)) {
                $line .= implode(' ', array_map(
                    static fn(string $value): string => self::expand($piece, $values, [$value], $sequence, $slot),
                    $values,
                ));
            } else {
                $line .= self::expand($piece, $values, $values, $sequence, $slot);
            }
        }

        return $line;
    }

    public function baseWords(int $sequence, string $slot): array
    {
        return [$this->command([], $sequence, $slot)->line ?? ''];
    }

    public function addedSize(array $values, int $count, int $sequence, string $slot): array
    {
        $bytes = 0;
        $total = \count($values);
        $added = \array_slice($values, $count);
        $spaces = max(0, $total - 1) - max(0, $count - 1);
        foreach ($this->pieces as $piece) {
            $isRepeated = $this->repeatsWords && self::hasList($piece);
            // Even without values, the command contains the fixed text of a repeated word once.
            [$oldCopies, $newCopies] = $isRepeated ? [max(1, $count), max(1, $total)] : [1, 1];
            $bytes += $isRepeated ? $spaces : 0;
            foreach ($piece as $part) {
                if (\is_string($part)) {
                    $bytes += \strlen($part) * ($newCopies - $oldCopies);
                } elseif ($part->replacement->isList()) {
                    $texts = array_map($part->quote(...), array_map($part->replacement->apply(...), $added));
                    $bytes += array_sum(array_map(\strlen(...), $texts)) + ($isRepeated ? 0 : $spaces);
                } else {
                    $old = $part->replacement->text($values, $count, $sequence, $slot);
                    $new = $part->replacement->text($values, $total, $sequence, $slot);
                    $bytes -= \strlen($old === null ? $part->textWithoutValue() : $part->quote($old)) * $oldCopies;
                    $bytes += \strlen($new === null ? $part->textWithoutValue() : $part->quote($new)) * $newCopies;
                }
            }
        }

        return [$bytes, 0];
    }

    /**
     * @param list<string|QuotedPlace> $piece
     * @param list<string>             $values
     * @param list<string>             $listed values that replace a list; see {@see Replacement::texts()}
     */
    private static function expand(array $piece, array $values, array $listed, int $sequence, string $slot): string
    {
        $text = '';
        foreach ($piece as $part) {
            if (\is_string($part)) {
                $text .= $part;
                continue;
            }
            $texts = $part->replacement->texts($values, $listed, $sequence, $slot);
            $text .= $texts === [] ? $part->textWithoutValue() : implode(' ', array_map($part->quote(...), $texts));
        }

        return $text;
    }

    /** @param list<string|QuotedPlace> $piece */
    private static function hasList(array $piece): bool
    {
        $isList = static fn($part): bool => $part instanceof QuotedPlace && $part->replacement->isList();

        return array_filter($piece, $isList) !== [];
    }

    /**
     * @param list<string|Replacement> $parts
     *
     * @return array{list<OpenQuotes>, list<bool>} for each replacement string: the quotes around it, and whether an
     *     argument begins there
     */
    private static function scan(array $parts, bool $hasSeveralValues): array
    {
        $scanner = new ShellLineScanner();
        $openQuotes = $isAtArgument = $refused = [];
        $misplacedList = null;
        foreach ($parts as $part) {
            if (\is_string($part)) {
                $scanner->read($part);
                continue;
            }
            $openQuotes[] = $scanner->openQuotes();
            $isAtArgument[] = $scanner->isAtArgument();
            $place = $scanner->refusalReason();
            if ($place === 'directly after $' || !$part->isNumber()) {
                $refused[] = [$part->text, $place];
            }
            if ($hasSeveralValues && $part->isList() && $scanner->allowsOnlyOneValue()) {
                $misplacedList ??= $part->text;
            }
            $scanner->valueInserted();
        }
        foreach ($refused as [$replacement, $place]) {
            $place = $scanner->hasHereDocument ? 'in a line with a here-document (<<)' : $place;
            if ($place !== null) {
                throw self::unsafe($replacement, $place);
            }
        }
        if ($misplacedList !== null) {
            throw new UsageException(
                "the command contains {$misplacedList} after =, < or >, where only one value can be inserted;"
                . ' give -N with the position of a value, such as {1}, or run a command for each value',
            );
        }

        return $scanner->hasHereDocument
            ? [array_map(static fn(): OpenQuotes => OpenQuotes::Refused, $openQuotes), $isAtArgument]
            : [$openQuotes, $isAtArgument];
    }

    private static function unsafe(string $replacement, string $place): UsageException
    {
        $advice = str_starts_with($place, 'after ') ? 'move it to an earlier command, or pass it' : 'pass it';

        return new UsageException(
            "the command contains {$replacement} {$place}, where a shell could run the input as code; {$advice} as an"
            . " argument, as in: sh -c 'echo \"\$1\"' sh {$replacement}",
        );
    }
}
