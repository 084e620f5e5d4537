<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Run;

/** One command line for two tools, with the recorded outcome. */
final class RecordedLine
{
    /**
     * @param list<string> $words      after the name of the tool
     * @param string       $input      standard input
     * @param int          $status     of the other tool
     * @param string|null  $ownOutput  output of `spindle run`, or a part of its message if the output is empty; null if
     *                                 both tools do the same
     * @param string       $difference why `spindle run` does something else
     */
    public function __construct(
        public readonly array $words,
        public readonly string $input,
        public readonly string $output,
        public readonly int $status,
        public readonly ?string $ownOutput,
        public readonly int $ownStatus,
        public readonly string $difference,
    ) {}

    /**
     * Reads a file of lines. Each line is a `$` with the words as bash reads them, then `<` with the input, `>` with
     * the output and `?` with the exit status, if they are not empty and 0. `own>` and `own?` are the output and the
     * status of `spindle run` where they differ, for the reason after `difference:`. Other lines are titles.
     *
     * @return iterable<string, array{self}>
     */
    public static function read(string $path): iterable
    {
        $blocks = explode("\n$ ", (string) file_get_contents($path));
        $lines = [];
        $outcomes = [];
        foreach (\array_slice($blocks, 1) as $block) {
            [$line, $rest] = explode("\n", $block, 2) + [1 => ''];
            preg_match_all('/^(<|>|\?|own>|own\?|difference:) (.*)$/m', $rest, $match);
            $lines[] = $line;
            $outcomes[] = array_combine($match[1], $match[2]);
        }
        foreach (self::words($lines) as $i => $words) {
            $fields = $outcomes[$i];
            yield ($i + 1) . ": {$lines[$i]}" => [new self(
                $words,
                self::text($fields['<'] ?? ''),
                self::text($fields['>'] ?? ''),
                (int) ($fields['?'] ?? 0),
                isset($fields['difference:']) ? self::text($fields['own>'] ?? '') : null,
                (int) ($fields['own?'] ?? $fields['?'] ?? 0),
                $fields['difference:'] ?? '',
            )];
        }
    }

    private static function text(string $escaped): string
    {
        return stripcslashes($escaped);
    }

    /**
     * @param list<string> $lines
     *
     * @return list<list<string>> the words of each line, as bash reads them without globbing
     */
    private static function words(array $lines): array
    {
        $script = 'set -f;';
        foreach ($lines as $line) {
            $script .= "set -- {$line}; for word; do printf '%s\\0' \"\$word\"; done; printf '\\1\\0';\n";
        }
        $pipes = [];
        $process = proc_open(['bash', '+B', '-c', $script], [1 => ['pipe', 'w']], $pipes);
        $output = $process === false ? '' : (string) stream_get_contents($pipes[1]);
        $all = array_map(
            static fn(string $words): array => $words === '' ? [] : explode("\0", substr($words, 0, -1)),
            explode("\1\0", $output),
        );

        return \array_slice($all, 0, \count($lines));
    }
}
