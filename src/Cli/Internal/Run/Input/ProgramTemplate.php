<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Command\Command;

/** A program and its arguments, without a shell. A word such as {} or {.} (a list) becomes one word for each value. */
final class ProgramTemplate implements TemplateBody
{
    /** Matches text that needs no quotes in a word. Without quotes, a first word with = would be an assignment. */
    private const PLAIN_PATTERN = '~^[\w@%+=:,./-]*$~D';
    private const PLAIN_PROGRAM_PATTERN = '~^[\w@%+:,./-]*$~D';

    /** @var non-empty-list<non-empty-list<string|Replacement>> words, split by {@see ReplacementStrings::split()} */
    private readonly array $words;

    /**
     * @param non-empty-list<string> $words
     * @param bool                   $repeatsWords whether a word with {} is repeated for each value (-X, -N, -L)
     * @param bool                   $keepsMissing whether a word {2} without a value is an empty argument, as with -q
     */
    public function __construct(
        array $words,
        private readonly ReplacementStrings $strings,
        private readonly bool $repeatsWords,
        private readonly bool $keepsMissing,
    ) {
        $this->words = array_map($this->strings->split(...), $words);
    }

    public function command(array $values, int $sequence, string $slot): Command
    {
        $words = $this->words($values, $sequence, $slot);

        return Command::of(...$words);
    }

    /**
     * Quotes only the values, like GNU parallel: for the word e{} and the value "a b", the text is e'a b'. Quotes a
     * whole word if its fixed text needs quotes. A word without a value is empty, so two blanks are next to each other.
     */
    public function text(array $values, int $sequence, string $slot): string
    {
        return implode(' ', $this->words($values, $sequence, $slot, isQuoted: true));
    }

    public function joinedCommand(string $values, int $sequence, string $slot): Command
    {
        return Command::ofJoined(...$this->words([$values], $sequence, $slot));
    }

    /** Returns whether the values are inserted in only one place, unchanged, and each value as a separate argument. */
    public function addsRecordsUnchanged(): bool
    {
        $places = [];
        foreach ($this->words as $parts) {
            foreach ($parts as $part) {
                if ($part instanceof Replacement && !$part->isNumber()) {
                    $places[] = [$parts, $part];
                }
            }
        }
        [$word, $list] = $places[0] ?? [null, null];
        $isWord = $word === ['', $list, ''] && $word !== $this->words[0];

        return \count($places) === 1 && $isWord && $list?->isList() === true && $list->part === '';
    }

    public function baseWords(int $sequence, string $slot): array
    {
        return $this->words([], $sequence, $slot);
    }

    public function addedSize(array $values, int $count, int $sequence, string $slot): array
    {
        $bytes = $words = 0;
        $total = \count($values);
        $added = \array_slice($values, $count);
        foreach ($this->words as $i => $parts) {
            $isRepeated = $this->isRepeated($parts);
            // Even without values, a command has one copy of the word's fixed text.
            [$oldCopies, $newCopies] = $isRepeated ? [max(1, $count), max(1, $total)] : [1, 1];
            foreach ($parts as $part) {
                if (\is_string($part)) {
                    $bytes += \strlen($part) * ($newCopies - $oldCopies);
                } elseif ($part->isList()) {
                    $bytes += array_sum(array_map(\strlen(...), array_map($part->apply(...), $added)));
                } else {
                    $old = $part->text($values, $count, $sequence, $slot);
                    $new = $part->text($values, $total, $sequence, $slot);
                    $bytes += \strlen((string) $new) * $newCopies - \strlen((string) $old) * $oldCopies;
                }
            }
            $moreWords = $this->wordCount($parts, $total, $i === 0) - $this->wordCount($parts, $count, $i === 0);
            $bytes += $moreWords; // a NUL byte ends each word
            $words += $moreWords;
        }

        return [$bytes, $words];
    }

    /**
     * Returns how many words a word of the template becomes in a command with $count values.
     *
     * @param non-empty-list<string|Replacement> $parts
     */
    private function wordCount(array $parts, int $count, bool $isProgram): int
    {
        $isMissing = \count($parts) > 1;
        $lists = 0;
        foreach ($parts as $part) {
            $lists += (int) ($part instanceof Replacement && $part->isList());
            $isMissing = $isMissing && ($part === '' || ($part instanceof Replacement && !$part->hasText($count)));
        }
        if ($isMissing) {
            return $isProgram || ($this->keepsMissing && $count > 0) ? 1 : 0;
        }
        $more = max(0, $count - 1);

        return 1 + ($this->isRepeated($parts) ? $more : $lists * $more);
    }

    /** @param non-empty-list<string|Replacement> $parts */
    private function isRepeated(array $parts): bool
    {
        return $this->repeatsWords && self::hasList($parts);
    }

    /**
     * @param list<string> $values
     * @param bool         $isQuoted whether the words are quoted, for printing
     *
     * @return list<string>
     */
    private function words(array $values, int $sequence, string $slot, bool $isQuoted = false): array
    {
        $words = [];
        foreach ($this->words as $i => $parts) {
            $quotesValues = $isQuoted && self::isPlain($parts, isProgram: $i === 0);
            $expanded = $this->expanded($parts, $values, $sequence, $slot, $quotesValues);
            $isKept = $i === 0 || ($this->keepsMissing && $values !== []); // else, a value could be the program
            if ($expanded === [] && ($isKept || $isQuoted)) {
                $expanded = [$isKept && $quotesValues ? ShellQuotes::quoted('') : ''];
            }
            array_push(
                $words,
                ...($isQuoted && !$quotesValues ? array_map(ShellQuotes::quoted(...), $expanded) : $expanded),
            );
        }

        return $words;
    }

    /**
     * Returns the words that replace one word of the template.
     *
     * @param non-empty-list<string|Replacement> $parts
     * @param list<string>                       $values
     *
     * @return list<string>
     */
    private function expanded(array $parts, array $values, int $sequence, string $slot, bool $quotesValues): array
    {
        $list = $parts[1] ?? null;
        if ($list instanceof Replacement && $list->isList() && $parts === ['', $list, '']) {
            $words = $list->part === '' ? $values : array_map($list->apply(...), $values);

            return $quotesValues ? array_map(ShellQuotes::quoted(...), $words) : $words;
        }
        if (\count($values) < 2 || !$this->isRepeated($parts)) {
            return self::expand($parts, $values, $values, $sequence, $slot, $quotesValues);
        }
        $words = [];
        foreach ($values as $value) {
            array_push($words, ...self::expand($parts, $values, [$value], $sequence, $slot, $quotesValues));
        }

        return $words;
    }

    /**
     * Returns whether the text of a word, without its replacement strings, needs no quotes.
     *
     * @param non-empty-list<string|Replacement> $parts
     */
    private static function isPlain(array $parts, bool $isProgram): bool
    {
        $text = implode('', array_filter($parts, \is_string(...)));

        return $parts !== ['']
            && preg_match($isProgram ? self::PLAIN_PROGRAM_PATTERN : self::PLAIN_PATTERN, $text) === 1;
    }

    /** @param non-empty-list<string|Replacement> $parts */
    private static function hasList(array $parts): bool
    {
        $isList = static fn(string|Replacement $part): bool => $part instanceof Replacement && $part->isList();

        return array_filter($parts, $isList) !== [];
    }

    /**
     * @param non-empty-list<string|Replacement> $parts
     * @param list<string>                       $values
     * @param list<string>                       $listed values for a list; each value after the first begins a new word
     *
     * @return list<string> empty if the word has only replacement strings, and none of them has a value
     */
    private static function expand(
        array $parts,
        array $values,
        array $listed,
        int $sequence,
        string $slot,
        bool $quotesValues,
    ): array {
        $words = [];
        $word = '';
        $isMissing = true;
        foreach ($parts as $part) {
            if (\is_string($part)) {
                $word .= $part;
                $isMissing = $isMissing && $part === '';
                continue;
            }
            foreach ($part->texts($values, $listed, $sequence, $slot) as $index => $text) {
                if ($index > 0) {
                    $words[] = $word;
                    $word = '';
                }
                $word .= $quotesValues ? ShellQuotes::quoted($text) : $text;
                $isMissing = false;
            }
        }

        return $isMissing && \count($parts) > 1 ? [] : [...$words, $word];
    }
}
