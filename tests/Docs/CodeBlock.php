<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

/** A fenced code block of a Markdown page, with the directives in the comment before it. */
final readonly class CodeBlock
{
    /** Languages of fences whose content is not executed. */
    public const NOT_CODE = ['text', 'json', 'tsv', 'ini', 'nginx', 'yaml', 'dockerfile', 'mermaid', 'c'];

    /**
     * @param int $line line of the opening fence
     * @param string|null $file name of the content in the folder of the page's other blocks; such a block is not run
     * @param string|null $skipped reason why the block is not run
     * @param int $exitStatus expected status of the last command
     * @param string|null $serves address and path at which the block answers until it is interrupted
     * @param string|null $folder folder of the project in which the block runs, with a database of its own
     * @param bool $isServed whether the block runs while the first server of the page is up
     * @param bool $stays whether the last command runs until the end of the test
     */
    private function __construct(
        public int $line,
        public string $language,
        public string $content,
        public ?string $file = null,
        public ?string $skipped = null,
        public int $exitStatus = 0,
        public ?string $serves = null,
        public ?string $folder = null,
        public bool $isServed = false,
        public bool $stays = false,
    ) {}

    /**
     * Returns the blocks of a page. The comment before a block gives one or several directives:
     *
     *     <!-- test: file=jobs.txt -->             not run; becomes a file in the folder of the page's other blocks
     *     <!-- test: exit=3 -->                    the last command of a console block ends with this status
     *     <!-- test: serves=127.0.0.1:80/x -->     a server: the test requests this, and interrupts the server
     *     <!-- test: in=examples/x -->             runs in this folder of the project, with a new database
     *     <!-- test: served -->                    runs while the server of the first console block with "serves" is up
     *     <!-- test: stays -->                     the last command runs until the end of the test
     *     <!-- test: skip-run because REASON -->   not run; the syntax of a PHP block is still checked
     *
     * The test replaces the address that a console block serves by a free one. A PHP block shows its output in comments
     * of the form "// prints TEXT", one for each line.
     *
     * @return list<self>
     */
    public static function allIn(string $markdown): array
    {
        $pattern = '/(?:^<!-- test: (?<directives>.*?) -->\n\s*)?'
            . '^(?<indent> *)(?<fence>`{3,}|~{3,})(?<language>[^\n`]*)\n(?<content>.*?)^ *\k<fence>[`~]* *$/ms';
        preg_match_all($pattern, $markdown, $matches, PREG_SET_ORDER | PREG_OFFSET_CAPTURE);

        return array_map(
            static fn(array $match): self => self::fromMatch(
                substr_count($markdown, "\n", 0, $match['fence'][1]) + 1,
                array_map(static fn(array $capture): string => $capture[0], $match),
            ),
            $matches,
        );
    }

    /** @param array<string> $match */
    private static function fromMatch(int $line, array $match): self
    {
        return new self(
            $line,
            trim($match['language'] ?? ''),
            (string) preg_replace('/^ {0,' . \strlen($match['indent'] ?? '') . '}/m', '', $match['content'] ?? ''),
            ...self::directives($match['directives'] ?? '', $line),
        );
    }

    /**
     * @return array{
     *     file?: string,
     *     skipped?: string,
     *     exitStatus?: int,
     *     serves?: string,
     *     folder?: string,
     *     isServed?: bool,
     *     stays?: bool,
     * }
     */
    private static function directives(string $text, int $line): array
    {
        $directives = [];
        while (($text = ltrim($text)) !== '') {
            if (preg_match('/^file=(\S+)/', $text, $match) === 1) {
                $directives['file'] = $match[1];
            } elseif (preg_match('/^exit=(\d+)/', $text, $match) === 1) {
                $directives['exitStatus'] = (int) $match[1];
            } elseif (preg_match('/^serves=(\S+)/', $text, $match) === 1) {
                $directives['serves'] = $match[1];
            } elseif (preg_match('/^in=(\S+)/', $text, $match) === 1) {
                $directives['folder'] = $match[1];
            } elseif (preg_match('/^served(?!\S)/', $text, $match) === 1) {
                $directives['isServed'] = true;
            } elseif (preg_match('/^stays(?!\S)/', $text, $match) === 1) {
                $directives['stays'] = true;
            } elseif (preg_match('/^skip-run because (\S.*)/', $text, $match) === 1) {
                $directives['skipped'] = $match[1];
            } else {
                throw new \UnexpectedValueException(
                    "Line {$line}: \"{$text}\" is no directive: give file=NAME, exit=STATUS, serves=ADDRESS/PATH,"
                    . ' in=FOLDER, served, stays or skip-run because REASON',
                );
            }
            $text = substr($text, \strlen($match[0]));
        }

        return $directives;
    }

    /**
     * Returns the first console block that starts a server.
     *
     * @param list<self> $blocks
     */
    public static function serverOf(array $blocks): ?self
    {
        foreach ($blocks as $block) {
            if ($block->serves !== null && $block->language === 'console') {
                return $block;
            }
        }

        return null;
    }

    /** Returns whether a test does something with the block, other than to write it into a file. */
    public function isCode(): bool
    {
        return $this->file === null && !\in_array($this->language, self::NOT_CODE, true);
    }

    /**
     * Returns the commands of a console block, each with the output that follows it.
     *
     * A command begins with "$ ". A backslash at the end of a line continues it on the next line.
     *
     * @return list<array{string, string}> command and expected output; "" if none is shown
     */
    public function commands(): array
    {
        preg_match_all(
            '/^\$ ((?:[^\n]*\\\\\n)*[^\n]*)\n((?:(?!\$ )[^\n]*\n)*)/m',
            $this->content,
            $matches,
            PREG_SET_ORDER,
        );

        return array_map(static fn(array $match): array => [$match[1], $match[2]], $matches);
    }

    /** Returns the output that the comments of a PHP block show; null when there are none. */
    public function printed(): ?string
    {
        preg_match_all('~// prints (.+)$~m', $this->content, $matches);

        return $matches[1] === [] ? null : implode("\n", $matches[1]) . "\n";
    }
}
