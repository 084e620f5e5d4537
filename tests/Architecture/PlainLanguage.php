<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

/**
 * Finds text that has to be read twice: long lines, comments without a subject, words that this field does not use.
 *
 * docs/contributing/plain-language.md gives the rules and their reasons.
 */
final class PlainLanguage
{
    public const MAX_COLUMNS = 120;

    /** First words after which a comment has no subject that the reader can name. */
    private const BEGINNINGS = [
        'what', 'who', 'whoever', 'whom', 'whose', 'nobody', 'somebody', 'anybody', 'everybody',
        'so many', 'so much', 'as many', 'as much',
        'he', 'his', 'she', 'her', 'it', 'its', 'they', 'them', 'their', 'theirs',
        'this', 'that', 'these', 'those', 'such',
        'of', 'by', 'from', 'into', 'onto', 'among', 'behind', 'beside', 'besides', 'beyond', 'within', 'upon',
        'where', 'there',
    ];

    /** Patterns of words to avoid, with a plain replacement for each. */
    private const WORDS = [
        'who(?:m|ever)?' => '"it", or the name of the thing',
        '(?:no|some|any|every)body' => 'the name of the thing',
        'he|him|his' => '"it", or the name of the thing',
        'so many|so much' => 'N, a number or the name of a parameter',
        '(?:is|are|was|were|be|been|being) told' => '"is reported", "returns"',
        'is had|are had|be had' => '"exists", "is available"',
        'looks? (?:at|whether|for)|looking (?:at|whether|for)' => '"checks"',
        'kin' => '"and similar"',
        'farewell' => '"goodbye", "shutdown"',
        'in vain' => '"without effect", "wasted"',
        'hitherto' => '"so far"',
        'thereof|whereof|thereby|whereby|whence|thence|thereupon' => 'a clause with a subject',
        'mended|mends?|mending' => '"fixed"',
        'what is there' => 'the name of the thing',
        'anew' => '"again"',
        'of one\'s own|of (?:his|her|their) own' => '"its own"',
        'alike' => '"the same"',
        'meanwhile' => '"while …"',
    ];

    private const FOLDERS = ['src', 'tests', 'bench', 'examples', 'integrations', 'tools', 'docs'];

    /** Files that are not checked, with the reason. */
    private const EXCEPTIONS = ['examples/aircraft/routes.php' => 'Symfony generates it'];

    /** Lines that can't be broken, with the reason: the beginning of each line's text, by file. */
    private const LONG_LINES = [
        'src/Http/Internal/Process/ProcessQueries.php' => [
            '* https://kubernetes.io/docs/tasks/configure-pod-container/' => 'a URL',
        ],
    ];

    /** @param array<string, array<string, string>> $longLines reasons by the beginning of a line's text, by file */
    public function __construct(private readonly string $root, private readonly array $longLines = self::LONG_LINES) {}

    /** @return list<string> PHP files and pages of Markdown, relative to the root, in order */
    public function files(): array
    {
        $files = (array) glob("{$this->root}/*.md");
        foreach (self::FOLDERS as $folder) {
            if (is_dir("{$this->root}/{$folder}")) {
                $tree = new \RecursiveDirectoryIterator("{$this->root}/{$folder}", \FilesystemIterator::SKIP_DOTS);
                $texts = new \RegexIterator(new \RecursiveIteratorIterator($tree), '~\.(?:php|md)$~D');
                $files = [...$files, ...array_keys(iterator_to_array($texts))];
            }
        }
        $relative = array_map(fn(mixed $file): string => substr((string) $file, \strlen($this->root) + 1), $files);
        sort($relative);

        return array_values(array_diff($relative, array_keys(self::EXCEPTIONS)));
    }

    /** @return list<array{line: int, rule: string, text: string}> sorted by line */
    public function check(string $file): array
    {
        $text = (string) file_get_contents("{$this->root}/{$file}");
        $isCode = str_ends_with($file, '.php');
        $found = $isCode ? self::comments($text) : self::prose($text);
        foreach (self::longLines($text, $isCode) as $number => $line) {
            if ($this->exception($file, $line) === null) {
                $found[] = ['line' => $number, 'rule' => 'long line', 'text' => mb_strlen($line) . ' columns'];
            }
        }
        usort($found, static fn(array $one, array $other): int => $one['line'] <=> $other['line']);

        return $found;
    }

    /** @return list<string> exceptions for long lines that apply to no line, as file and beginning of the text */
    public function unusedExceptions(): array
    {
        $unused = [];
        foreach ($this->longLines as $file => $reasons) {
            $text = (string) @file_get_contents("{$this->root}/{$file}");
            $lines = self::longLines($text, str_ends_with($file, '.php'));
            $used = array_map(fn(string $line): ?string => $this->exception($file, $line), $lines);
            foreach (array_diff(array_keys($reasons), $used) as $beginning) {
                $unused[] = "{$file}: {$beginning}";
            }
        }

        return $unused;
    }

    /**
     * Returns the names of several classes of src that implement no common interface and extend no common class.
     *
     * @return array<string, list<string>> files by name
     */
    public function sharedNames(): array
    {
        $names = [];
        foreach ($this->files() as $file) {
            $name = basename($file, '.php');
            if (preg_match('~^src/(?:.*/)?[A-Z]\w*\.php$~D', $file) === 1 && $this->declares($file, $name)) {
                $names[$name][] = $file;
            }
        }

        return array_filter($names, fn(array $files): bool => \count($files) > 1 && !$this->areOfOneKind($files));
    }

    /** @return array{lines: int, comments: int} totals for the files below a folder */
    public function commentLines(string $folder): array
    {
        $counts = ['lines' => 0, 'comments' => 0];
        foreach ($this->files() as $file) {
            if (!str_starts_with($file, "{$folder}/") || !str_ends_with($file, '.php')) {
                continue;
            }
            foreach (explode("\n", (string) file_get_contents("{$this->root}/{$file}")) as $line) {
                ++$counts['lines'];
                $counts['comments'] += preg_match('~^\s*(?://|/\*|\*)~', $line) === 1 ? 1 : 0;
            }
        }

        return $counts;
    }

    /** Returns the beginning of a long line's text that allows it; null when nothing does. */
    private function exception(string $file, string $line): ?string
    {
        foreach (array_keys($this->longLines[$file] ?? []) as $beginning) {
            if (str_starts_with(ltrim($line), $beginning)) {
                return $beginning;
            }
        }

        return null;
    }

    /** @return array<int, string> long lines by number; rows of Markdown tables are left out */
    private static function longLines(string $text, bool $isCode): array
    {
        $found = [];
        $isFenced = false;
        foreach (explode("\n", $text) as $index => $line) {
            $isFenced = !$isCode && str_starts_with(ltrim($line), '```') ? !$isFenced : $isFenced;
            $isTable = !$isCode && !$isFenced && str_starts_with(ltrim($line), '|');
            if (!$isTable && mb_strlen($line) > self::MAX_COLUMNS) {
                $found[$index + 1] = $line;
            }
        }

        return $found;
    }

    /** @return list<array{line: int, rule: string, text: string}> */
    private static function comments(string $text): array
    {
        $found = [];
        foreach (self::commentsOf($text) as [$line, $comment]) {
            foreach (self::parts($comment) as $part) {
                $found = [...$found, ...self::beginning($line, $part), ...self::words($line, $part)];
            }
        }

        return $found;
    }

    /**
     * Returns the comments of PHP code. Line comments on consecutive lines count as one.
     *
     * @return list<array{int, string}> first line, and text without markers
     */
    private static function commentsOf(string $text): array
    {
        $comments = [];
        $last = -1;
        foreach (\PhpToken::tokenize($text) as $token) {
            if (!$token->is([\T_COMMENT, \T_DOC_COMMENT])) {
                continue;
            }
            $isLine = str_starts_with($token->text, '//');
            $words = $isLine
                ? substr($token->text, 2)
                : preg_replace('~^\s*\*(?!/) ?~m', '', trim(substr($token->text, 2, -2), '*'));
            $comment = [$token->line, trim((string) $words)];
            if ($isLine && $token->line === $last + 1) {
                [$line, $before] = array_pop($comments) ?? [$token->line, ''];
                $comment = [$line, "{$before}\n{$comment[1]}"];
            }
            $comments[] = $comment;
            $last = $isLine ? $token->line : -1;
        }

        return $comments;
    }

    /** @return list<string> paragraphs of a comment, and the descriptions of its tags */
    private static function parts(string $comment): array
    {
        $parts = [];
        foreach ((array) preg_split('~\n\h*\n|^(?=@\w)~m', $comment) as $part) {
            $part = (string) $part;
            if (!str_starts_with($part, '@')) {
                $parts[] = trim($part);
            } elseif (preg_match('~^@(?:phpstan-|psalm-)?(?:param|return|throws|var)\b(.*)$~s', $part, $match) === 1) {
                $parts[] = 'described: ' . trim($match[1]);
            }
        }

        return array_values(array_filter($parts, static fn(string $part): bool => $part !== ''));
    }

    /** @return list<array{line: int, rule: string, text: string}> */
    private static function beginning(int $line, string $part): array
    {
        if (preg_match('~^(?:' . implode('|', self::BEGINNINGS) . ')\b(?!-)~i', $part, $match) !== 1) {
            return [];
        }

        return [['line' => $line, 'rule' => "begins with \"{$match[0]}\"", 'text' => self::excerpt($part, 0)]];
    }

    /** @return list<array{line: int, rule: string, text: string}> */
    private static function words(int $line, string $part): array
    {
        $found = [];
        $plain = (string) preg_replace(['~`[^`\n]*`~', '~\{@\w+ [^}]*\}~', '~"[^"\n]*"~'], '', $part);
        foreach (self::WORDS as $words => $instead) {
            if (preg_match("~(?<![\\w\$'-])(?:{$words})(?![\\w'-])~i", $plain, $match, \PREG_OFFSET_CAPTURE) === 1) {
                $found[] = [
                    'line' => $line,
                    'rule' => "\"{$match[0][0]}\": {$instead}",
                    'text' => self::excerpt($plain, $match[0][1]),
                ];
            }
        }

        return $found;
    }

    /** @return list<array{line: int, rule: string, text: string}> findings in a Markdown page outside of code */
    private static function prose(string $text): array
    {
        $found = [];
        $isFenced = false;
        foreach (explode("\n", $text) as $index => $line) {
            if (str_starts_with(ltrim($line), '```')) {
                $isFenced = !$isFenced;
            } elseif (!$isFenced) {
                $found = [...$found, ...self::words($index + 1, $line)];
            }
        }

        return $found;
    }

    private static function excerpt(string $text, int $at): string
    {
        $from = max(0, $at - 30);

        return trim((string) preg_replace('~\s+~', ' ', substr($text, $from, 90)));
    }

    private function declares(string $file, string $name): bool
    {
        $text = (string) file_get_contents("{$this->root}/{$file}");

        return preg_match("~^[a-z ]*(?:class|interface|enum|trait) {$name}\b~m", $text) === 1;
    }

    /**
     * Returns whether all files declare a class that implements the same interface or extends the same class.
     *
     * @param list<string> $files
     */
    private function areOfOneKind(array $files): bool
    {
        $kinds = array_map(function (string $file): array {
            $text = (string) file_get_contents("{$this->root}/{$file}");
            preg_match('~^[a-z ]*(?:class|interface|enum|trait) \w+(?:: \w+)?([^{]*)~m', $text, $match);

            return array_diff((array) preg_split('~[\s,]+~', $match[1] ?? ''), ['', 'extends', 'implements']);
        }, $files);

        return array_intersect(...$kinds) !== [];
    }
}
