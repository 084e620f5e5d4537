<?php

declare(strict_types=1);

namespace Spindle\Site;

/** The text of a Markdown page: its headings, its introduction, its links and its inline code. */
final readonly class Markdown
{
    private const BLOCK = '^ *(?<fence>`{3,}|~{3,})[^\n]*\n.*?^ *\k<fence>[`~]* *$|<!--.*?-->';
    private const INLINE = '(?<ticks>`+)(?!`)(?<code>.*?)(?<!`)\k<ticks>(?!`)';
    private const HEADING = '^(?<level>#{1,6}) +(?<text>[^\n]+?) *$';

    /** A table that compares other tools with Spindle, whose column is the last one. */
    private const COMPARISON = '(?<comparison>^\|[^\n]* \| Spindle \|\n(?:\|[^\n]*(?:\n|\z))+)';
    private const LINK = '(?<=\]\()(?<link>[^)\s]+)(?=\))|(?<=src="|srcset="|href=")(?<attribute>[^"\s]+)(?=")';

    public string $body;

    /** @var array<string, string> fields of the front matter */
    public array $fields;

    public function __construct(string $text)
    {
        $fields = [];
        if (preg_match('/^---\n(.*?)\n---\n/s', $text, $match) === 1) {
            preg_match_all('/^(\w+): *(.+)$/m', $match[1], $pairs);
            $fields = array_combine($pairs[1], $pairs[2]);
            $text = ltrim(substr($text, \strlen($match[0])));
        }
        $this->fields = $fields;
        $this->body = $text;
    }

    public function title(): string
    {
        return $this->headings()[0]['text'] ?? '';
    }

    /** Returns the first paragraph as one line without links. */
    public function introduction(): string
    {
        $text = (string) preg_replace('/' . self::BLOCK . '/ms', '', $this->body);
        preg_match('/^(?![#<|\-*>\s]|!\[).+?(?=\n\n|\z)/ms', $text, $match);

        return trim((string) preg_replace(['/\s+/', '/\[([^\]]*)\]\([^)]*\)/'], [' ', '$1'], $match[0] ?? ''));
    }

    /** @return list<array{level: int, text: string, slug: string}> in the order of the page */
    public function headings(): array
    {
        $headings = $seen = [];
        preg_match_all('/' . self::BLOCK . '|' . self::HEADING . '/ms', $this->body, $matches, PREG_SET_ORDER);
        foreach ($matches as $match) {
            if (!isset($match['level'], $match['text'])) {
                continue;
            }
            $text = (string) preg_replace(['/`([^`]*)`/', '/\[([^\]]*)\]\([^)]*\)/'], '$1', $match['text']);
            $slug = self::slug($text);
            $seen[$slug] = ($seen[$slug] ?? -1) + 1;
            $headings[] = [
                'level' => \strlen($match['level']),
                'text' => $text,
                'slug' => $seen[$slug] === 0 ? $slug : "{$slug}-{$seen[$slug]}",
            ];
        }

        return $headings;
    }

    /**
     * Replaces the targets of links and images outside of code.
     *
     * @param \Closure(string): string $replace
     */
    public function withLinks(\Closure $replace): string
    {
        return $this->replaced(
            self::BLOCK . '|' . self::INLINE . '|' . self::LINK,
            static fn(array $match): ?string
                => isset($match['link']) || isset($match['attribute']) ? $replace($match[0] ?? '') : null,
        );
    }

    /**
     * Makes links of inline code that is not in a heading or a link, nor in a table's column of another tool.
     *
     * @param \Closure(string): ?string $target returns the target for a code, or null for none
     */
    public function withLinkedCode(\Closure $target): string
    {
        return $this->replaced(
            self::BLOCK . '|' . self::HEADING . '|\[[^\]]*\]\([^)]*\)|' . self::COMPARISON . '|' . self::INLINE,
            static function (array $match) use ($target): ?string {
                if (isset($match['comparison'])) {
                    return (string) preg_replace_callback(
                        '/(?<=[^\\\\]\| )(?:[^|\n]|\\\\\|)*\|$/m',
                        static fn(array $cell): string => (new self($cell[0]))->withLinkedCode($target),
                        $match['comparison'],
                    );
                }
                $link = isset($match['code']) ? $target($match['code']) : null;

                return $link === null ? null : '[' . ($match[0] ?? '') . "]({$link})";
            },
        );
    }

    /** Returns the anchor of a heading, by the rules of GitHub. The configuration of VitePress has the same rules. */
    public static function slug(string $text): string
    {
        $words = preg_replace('/[^\p{L}\p{N}\p{Pc}\- ]/u', '', mb_strtolower(trim($text)));

        return str_replace(' ', '-', (string) $words);
    }

    /** @param \Closure(array<string>): ?string $replace returns null to leave a match as it is */
    private function replaced(string $pattern, \Closure $replace): string
    {
        return (string) preg_replace_callback(
            "/{$pattern}/ms",
            static fn(array $match): string => $replace(array_filter($match, is_string(...))) ?? $match[0],
            $this->body,
            flags: PREG_UNMATCHED_AS_NULL,
        );
    }
}
