<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

/** A fenced code block of a Markdown page, with what the comment before it says about running it. */
final readonly class CodeBlock
{
    /**
     * @param int $line the line of the opening fence
     * @param string|null $file what the content is called in the folder of the page's other blocks; it is not run
     * @param string|null $skipped why it is not run
     * @param int $exitStatus of the last command
     * @param string|null $serves address and path at which it answers until it is interrupted
     * @param string|null $folder of the project in which it is run, with a database of its own
     * @param bool $isServed whether it is run while what the page serves first is up
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
    ) {}

    /**
     * A comment before a block gives directives, one or several:
     *
     *     <!-- test: file=jobs.txt -->             not run; a file that the page's other blocks find in their folder
     *     <!-- test: exit=3 -->                    the last command of a console block ends with this status
     *     <!-- test: serves=127.0.0.1:80/x -->     a server: it is asked for this, interrupted, and ends
     *     <!-- test: in=examples/x -->             run in this folder of the project, with a new database in its environment
     *     <!-- test: served -->                    run while the last command of the page's first block with "serves" is up
     *     <!-- test: skip-run because REASON -->   not run; a PHP block is checked for its syntax all the same
     *
     * Instead of an address that a console block serves, the test takes one that is free.
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

    /** @return array{file?: string, skipped?: string, exitStatus?: int, serves?: string, folder?: string, isServed?: bool} */
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
            } elseif (preg_match('/^skip-run because (\S.*)/', $text, $match) === 1) {
                $directives['skipped'] = $match[1];
            } else {
                throw new \UnexpectedValueException(
                    "Line {$line}: \"{$text}\" is no directive: give file=NAME, exit=STATUS, serves=ADDRESS/PATH, in=FOLDER, served or skip-run because REASON",
                );
            }
            $text = substr($text, \strlen($match[0]));
        }

        return $directives;
    }

    /**
     * Of a console block: the commands, each with the output that follows it.
     *
     * A command begins with "$ " and goes on in the next line after a backslash.
     *
     * @return list<array{string, string}> command and expected output, "" where none is shown
     */
    public function commands(): array
    {
        preg_match_all('/^\$ ((?:[^\n]*\\\\\n)*[^\n]*)\n((?:(?!\$ )[^\n]*\n)*)/m', $this->content, $matches, PREG_SET_ORDER);

        return array_map(static fn(array $match): array => [$match[1], $match[2]], $matches);
    }
}
