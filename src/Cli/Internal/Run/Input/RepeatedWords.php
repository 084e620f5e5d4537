<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/**
 * Finds the words that -X repeats for each value: the words with a list, such as {}. As in GNU parallel, a blank in
 * quotes ends a word too. An expansion such as $(...) belongs to the word around it, and also contains words.
 */
final class RepeatedWords
{
    private const SEPARATOR_PATTERN = '~((?:[ \t\n;&|<>()]|\\\\\n)+)~';
    private const ESCAPE_PATTERN = '~^\\\\[^\n]$~D';

    /** @var list<array{string|QuotedPlace, int, bool}> text or place, number of expansions around it, is separator? */
    private array $items = [];

    /**
     * @param list<string|QuotedPlace> $parts the parts of a shell line
     *
     * @return non-empty-list<list<string|QuotedPlace>> the line in pieces; each piece with a list is one word
     *
     * @throws UsageException if the shell could read a repeated word differently from the first one
     */
    public static function split(array $parts): array
    {
        $words = new self();
        $words->read($parts);
        $pieces = $words->pieces();
        self::rejectWordsInDifferentQuotes($pieces);

        return $pieces;
    }

    /** @param list<string|QuotedPlace> $parts */
    private function read(array $parts): void
    {
        $scanner = new ShellLineScanner();
        foreach ($parts as $part) {
            if (!\is_string($part)) {
                $this->items[] = [$part, $scanner->expansionDepth(), false];
                $scanner->valueInserted();
                continue;
            }
            for ($at = 0, $length = \strlen($part); $at < $length; $at += $bytes) {
                $depth = $scanner->expansionDepth();
                $bytes = $scanner->readNext($part, $at);
                // The text that begins or ends an expansion belongs to the word around it.
                $newDepth = $scanner->expansionDepth();
                $this->addText(substr($part, $at, $bytes), min($depth, $newDepth), $depth === $newDepth);
            }
        }
    }

    private function addText(string $text, int $depth, bool $canSeparate): void
    {
        $texts = $canSeparate && preg_match(self::ESCAPE_PATTERN, $text) !== 1
            ? preg_split(self::SEPARATOR_PATTERN, $text, -1, \PREG_SPLIT_DELIM_CAPTURE)
            : [$text];
        foreach ($texts === false ? [$text] : $texts as $index => $piece) {
            $this->items[] = [$piece, $depth, $index % 2 === 1];
        }
    }

    /** @return non-empty-list<list<string|QuotedPlace>> */
    private function pieces(): array
    {
        $pieces = [];
        $end = $wordDepth = 0;
        foreach ($this->items as $at => [$item, $depth]) {
            $isOfLastWord = $at < $end && $depth === $wordDepth;
            if (\is_string($item) || !$item->replacement->isList() || $isOfLastWord) {
                continue;
            }
            $first = $at;
            while ($first > 0 && !$this->endsWord($first - 1, $depth)) {
                --$first;
            }
            if ($first < $end) {
                throw self::unrepeatable([$item]);
            }
            $pieces[] = $this->slice($end, $first);
            $end = $at + 1;
            while ($end < \count($this->items) && !$this->endsWord($end, $depth)) {
                ++$end;
            }
            $pieces[] = $this->slice($first, $end);
            $wordDepth = $depth;
        }
        $pieces[] = $this->slice($end, \count($this->items));

        return $pieces;
    }

    /** Returns whether a word with $depth expansions around it ends at the item. */
    private function endsWord(int $at, int $depth): bool
    {
        [, $itemDepth, $isSeparator] = $this->items[$at];

        return $itemDepth < $depth || ($itemDepth === $depth && $isSeparator);
    }

    /** @return list<string|QuotedPlace> */
    private function slice(int $from, int $to): array
    {
        return array_column(\array_slice($this->items, $from, $to - $from), 0);
    }

    /**
     * Rejects a word with {} if a shell would read a second copy of the word in another way than the first. For
     * example, if an escaped blank is before #, only the # of the second copy begins a comment.
     *
     * @param list<list<string|QuotedPlace>> $pieces
     */
    private static function rejectWordsInDifferentQuotes(array $pieces): void
    {
        for ($index = 1; $index < \count($pieces); $index += 2) {
            $word = $pieces[$index];
            $earlier = \array_slice($pieces, 0, $index);
            $quotes = array_map(self::quotesAfter(...), [
                $earlier,
                [...$earlier, $word],
                [...$earlier, $word, [' '], $word],
            ]);
            if ($quotes[0] === OpenQuotes::Refused || $quotes !== array_fill(0, 3, $quotes[0])) {
                throw self::unrepeatable($word);
            }
        }
    }

    /**
     * @param list<list<string|QuotedPlace>> $pieces
     *
     * @return OpenQuotes|null null if a place would need other quotes than it has
     */
    private static function quotesAfter(array $pieces): ?OpenQuotes
    {
        $scanner = new ShellLineScanner();
        $text = '';
        foreach (array_merge(...$pieces) as $part) {
            if (\is_string($part)) {
                $text .= $part;
                continue;
            }
            $scanner->read($text);
            if ($scanner->openQuotes() !== $part->quotes) {
                return null;
            }
            $scanner->valueInserted();
            $text = '';
        }
        $scanner->read($text);

        return $scanner->openQuotes();
    }

    /** @param list<string|QuotedPlace> $word */
    private static function unrepeatable(array $word): UsageException
    {
        $text = implode('', array_map(
            static fn(string|QuotedPlace $part): string => \is_string($part) ? $part : $part->replacement->text,
            $word,
        ));

        return new UsageException(
            "the command contains {$text}, which can't be repeated for several values. With -X, -N and -L, a blank in"
            . ' quotes also ends a word; use -m, or write the word without such blanks',
        );
    }
}
