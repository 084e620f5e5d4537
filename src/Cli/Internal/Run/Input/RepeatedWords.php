<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\Cli\Internal\UsageException;

/**
 * Finds the words that -X, -N and -L repeat for each value: the words with a list, such as {}. As in GNU parallel, a
 * blank in quotes ends a word too. An expansion such as $(...) is a part of a word, and has words of its own.
 */
final class RepeatedWords
{
    public const SEPARATORS = " \t\n;&|<>()";

    private readonly ShellLineScanner $scanner;

    /** @var list<string|QuotedPlace> the scanned text and places of the line; each word begins a new item */
    private array $items = [];

    private string $text = '';

    private RepeatedWord $word;

    /** @var list<RepeatedWord> the words around the current word, one for each open expansion */
    private array $outerWords = [];

    /** @var list<array{int, int}> for each word with a list: index of its first item, and index after its last item */
    private array $ranges = [];

    private function __construct()
    {
        $this->scanner = new ShellLineScanner();
        $this->word = new RepeatedWord(0, OpenQuotes::None);
    }

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
        foreach ($parts as $part) {
            \is_string($part) ? $words->readText($part) : $words->readPlace($part);
        }
        $words->end();
        $pieces = [];
        $end = 0;
        foreach ($words->ranges as [$first, $next]) {
            $pieces[] = \array_slice($words->items, $end, $first - $end);
            $pieces[] = \array_slice($words->items, $first, $next - $first);
            $end = $next;
        }
        $pieces[] = \array_slice($words->items, $end);

        return $pieces;
    }

    private function readPlace(QuotedPlace $place): void
    {
        $this->addText();
        $this->items[] = $place;
        $this->scanner->valueInserted();
        if (!$place->replacement->isList()) {
            return;
        }
        $this->word->hasList = true;
        foreach ($this->outerWords as $outer) {
            $outer->hasInnerList = true;
        }
        foreach ([...$this->outerWords, $this->word] as $word) {
            if ($word->hasList && $word->hasInnerList) {
                throw self::unrepeatable(\array_slice($this->items, $word->start));
            }
        }
    }

    private function readText(string $text): void
    {
        for ($at = 0, $length = \strlen($text); $at < $length; $at += $bytes) {
            $depth = $this->scanner->expansionDepth();
            $before = $this->word->hasList ? clone $this->scanner : null;
            $bytes = $this->scanner->readNext($text, $at);
            $read = substr($text, $at, $bytes);
            $isEnd = $this->scanner->expansionDepth() < $depth;
            $isStart = $this->scanner->expansionDepth() > $depth;
            $isSeparator = !$isEnd && !$isStart && $this->isSeparator($read);
            if ($before !== null && ($isEnd || $isSeparator)) {
                $this->endWord($before);
            }
            $this->text .= $read;
            if ($isEnd) {
                $this->word = array_pop($this->outerWords) ?? $this->word;
            } elseif ($isStart || $isSeparator) {
                $this->addText();
                $isStart ? $this->outerWords[] = $this->word : null;
                $this->word = new RepeatedWord(\count($this->items), $this->scanner->openQuotes());
            }
        }
    }

    private function isSeparator(string $text): bool
    {
        // A backslash and a line feed continue a word. If they are the first characters, they separate two words.
        $isAtWordStart = $this->text === '' && $this->word->start === \count($this->items);

        return strspn($text, self::SEPARATORS) === \strlen($text) || $text === "\\\n" && $isAtWordStart;
    }

    private function end(): void
    {
        $words = [$this->word, ...array_reverse($this->outerWords)];
        foreach ($words as $this->word) {
            if ($this->word->hasList) {
                $this->endWord($this->scanner);
            }
        }
        $this->addText();
    }

    private function addText(): void
    {
        if ($this->text !== '') {
            $this->items[] = $this->text;
            $this->text = '';
        }
    }

    /**
     * Ends a word with a list. Rejects the word if a shell would read a second copy of it in another way. For example,
     * in a word that begins with # after an escaped blank, only the # of the second copy begins a comment.
     *
     * @param ShellLineScanner $scanner its position is the end of the word
     */
    private function endWord(ShellLineScanner $scanner): void
    {
        $this->addText();
        $this->ranges[] = [$this->word->start, \count($this->items)];
        $items = \array_slice($this->items, $this->word->start);
        $copy = clone $scanner;
        $text = ' ';
        $isSame = $this->word->quotes !== OpenQuotes::Refused && $copy->openQuotes() === $this->word->quotes;
        foreach ($items as $item) {
            if (\is_string($item)) {
                $text .= $item;
                continue;
            }
            $copy->read($text);
            $isSame = $isSame && $copy->openQuotes() === $item->quotes;
            $copy->valueInserted();
            $text = '';
        }
        $copy->read($text);
        if (!$isSame || $copy->openQuotes() !== $this->word->quotes) {
            throw self::unrepeatable($items);
        }
    }

    /** @param list<string|QuotedPlace> $word */
    private static function unrepeatable(array $word): UsageException
    {
        $text = implode('', array_map(
            static fn(string|QuotedPlace $part): string => \is_string($part) ? $part : $part->replacement->text,
            $word,
        ));

        return new UsageException(
            "the command contains {$text}, which can't be repeated for several values: with -X, -N and -L, a blank in"
            . ' quotes also ends a word, and no word can have {} inside and outside of $(...); use -m',
        );
    }
}
