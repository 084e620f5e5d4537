<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Cli\Internal\Run\Input\CommandTemplate;
use Spindle\Cli\Internal\UsageException;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/** Shows that real shells read inserted values as data, wherever they stand in a line. */
final class CommandTemplateFuzzTest extends TestCase
{
    use OwnDirectory;

    private const VALUES = 300;

    private const HOSTILE = [
        '$(touch owned)', '`touch owned`', "'; touch owned; '", '"; touch owned; "', "\ntouch owned\n",
        ')`touch owned`',
        '; touch owned #',
        "'\"; touch owned; \"'", '}; touch owned', "\\'; touch owned; \\'", "'\$(touch owned)'", '"$(touch owned)"',
        ')) ; touch owned', "a\nE\ntouch owned\n", 'a[$(touch owned)]',
    ];

    /** Pieces of random templates; none of them runs an existing program. */
    private const PIECES = [
        '{}', '{}', '{}', 'a', 'x ', ' ', ' ', "\n", "\t", '#', "'", '"', "'", '"', '`', '\\', "\\\n", '$', '$(',
        '$(', '"$(', '$((', '))', ')', ')', '(', '((', '${', '${x', '${x:-', '}', '{', '$x', '$#',
        '$$', '$[', ']', '$\'', '$"', ';', '&', '|', '<', '<<', '<<E', '>&', '1>& ', 'y[', '{y[', ']}>f ', 'y=([',
        '[[ ', '[[(', ']=',
        ' -eq ', "\nE\n", 'case x in ', 'x) ', ';;', ' esac', ' && ', ' || ', 'echo ', '=', '!', '~', '*', '"{}"',
        "'{}'", '$({})', 'if ', ' then ', ' fi', '1', '-', ':', '/',
    ];

    /** Pieces of templates for several values. Only the first value can be a command. */
    private const LIST_PIECES = [
        ...self::PIECES, '{1}', '{2}', '{-2}', '{.}', 'x={}', ' x={} ', ' > {}', ' >{}', ' -o={} ', '"x {} y"',
        ' a{}b ', ';x=', ' 2> ', '\ #', '\;', '\ ', ' y="a b"', "z='a b'",
    ];

    /**
     * Pieces of templates for a comparison.
     *
     * None of them runs concurrently with the rest, depends on the process, or names a file elsewhere.
     */
    private const COMPARED_PIECES = [
        '{}', '{}', '{}', '{}', '"{}"', "'{}'", '"{}', '{}"', '"', '"', '"', "'", "'", "\\\n", "\\\n{}", "\\\n{}",
        "\\\n{}", '$x', '$x', '"$x', "\"\$x\\\n", "\"\$x\\\n", "\"\$x\\\n", "\$x\\\n", "\$x\\\n", '${x}', '$', '$1',
        '$#', '$-', '${x:-y}', '${x#X}', ' ', ' ', "\n",
        " \\\n", '\\"', '\\\\', '\\$', '~', ':', '=', '-', './', ',', 'a', 'b.', '1', '2', ';', ' ; printf "[%s]" ',
        '|cat;', '>&', '>&2', '2>&1', '>f', ' >f', '#', ' #', '(echo q)', '$(echo q)', '$((1+1))', '`echo q`',
        'a=', ';x=', '%', '@', '+', '!', '*', '?', '}', '{', ' : ', 'x', ';case b in [.{}.])echo m;;esac;',
    ];

    /** Pieces of the words of a program and its arguments. */
    private const WORD_PIECES = [
        '{}', '{}', '{}', '{.}', '{1}', '{#}', 'a', 'b c', '=', '=', '-', '/', '.', ':', ',', '@', '%', '+', '~', '$x',
        '*', "'", '"', '\\', '#', ';', "\n", '!', '(', '[', 'if',
    ];

    /** Places where an unquoted value once had a special meaning. */
    private const COMPARED_TEMPLATES = [
        "printf '%s\\n' \"\$x\\\n{}\"", "printf '%s\\n' \"{}\$x\\\n\\\n{}\"", 'case b in [.{}.]) echo m; esac',
        'case b in [[:{}:]]) echo m; esac', 'printf "%s" <& {}', 'echo ~-{}', 'echo {1..{}..2}',
    ];

    /** Mostly plain words, which need no quotes in places where that makes no difference. */
    private const COMPARED_VALUES = [
        'abc', '2', '0', '10', 'x', 'if', 'then', '-', 'a-', 'a-c', 'a.b', 'a/b', '::', '%1', '_', '+x', '@', 'alpha',
        '', 'a b', '$x', '*', '~', "it's", '"', "a\nb", '\\', '#',
    ];

    /**
     * @return iterable<string, array{list<string>, string, int}> shell, template, number of times it prints the value
     */
    public static function templates(): iterable
    {
        $templates = [
            ['printf "%s\0" {}', 1],
            ['printf "%s\0" "{}"', 1],
            ["printf '%s\\0' '{}'", 1],
            ["printf '%s\\0' \"\"{}'' \"{}\"'' {}\"\"", 3],
            ['printf "%s\0" "${none}{}" "$none""{}" "$(:){}" `:`{}', 4],
            // In UTF-8, bash 5.2 misreads the bytes F8 5C 2E in "${x%.}".
            ['LC_ALL=C; x=$(printf "%s." {}); printf "%s\0" "${x%.}"', 1],
            ['LC_ALL=C; x=$(printf "%s." "{}"); printf "%s\0" "${x%.}"', 1],
            ["LC_ALL=C; x=\$(y=\$(printf '%s.' '{}'); printf '%s' \"\$y\"); printf '%s\\0' \"\${x%.}\"", 1],
            ["# it's a comment\nprintf '%s\\0' {} # and \"another", 1],
            ["(printf '%s\\0' a#\"{}\" | sed -z 's/^a#//')", 1],
            ["printf '%s\\0' \\\n  {}", 1],
            ["printf '%s\\0' \$((1 + (2 << 1))){} | sed -z 's/^5//'", 1],
        ];
        foreach (self::shells() as $name => $shell) {
            foreach ($templates as [$template, $count]) {
                yield "{$name}: {$template}" => [$shell, $template, $count];
            }
        }
    }

    /** @param list<string> $shell */
    #[DataProvider('templates')]
    public function testEveryValueArrivesUnchanged(array $shell, string $template, int $count): void
    {
        $parsed = CommandTemplate::fromWords([$template]);
        $values = ['', 'a', '1', 'if', 'x=1', ...self::HOSTILE, ...self::randomValues(Scale::of(self::VALUES))];
        $script = implode(
            "\n",
            array_map(static fn(string $value): string => (string) $parsed->command([$value], 1, 1)->line, $values),
        );

        $process = $this->execute($shell, $script);

        $expected = implode(
            '',
            array_map(static fn(string $value): string => str_repeat("{$value}\0", $count), $values),
        );
        self::assertSame([bin2hex($expected), ''], [bin2hex($process->getOutput()), $process->getErrorOutput()]);
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testNothingOfAValueIsExecutedWhateverTheTemplate(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $used = 0;
        foreach (Scale::rounds(0.5, 50) as $_) {
            $template = self::randomTemplate($random, 'echo ', self::PIECES);
            try {
                $parsed = CommandTemplate::fromWords([$template]);
            } catch (UsageException) {
                continue;
            }
            if (!$parsed->isShellLine()) {
                continue;
            }
            ++$used;
            foreach (self::shells() as $name => $shell) {
                $value = self::HOSTILE[$random->getInt(0, \count(self::HOSTILE) - 1)];
                $line = (string) $parsed->command([$value], 1, 1)->line;
                $this->execute($shell, $line);
                self::assertFileDoesNotExist($this->path('owned'), "{$name} of " . json_encode([$template, $line]));
            }
        }
        self::assertGreaterThan(0, $used);
    }

    public function testNothingOfSeveralValuesIsExecutedWhateverTheTemplate(): void
    {
        $this->script('own', 'touch owned');
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $used = 0;
        foreach (Scale::rounds(0.5, 50) as $_) {
            $template = self::randomTemplate($random, 'echo ', self::LIST_PIECES);
            try {
                $parsed = CommandTemplate::fromWords(
                    [$template],
                    repeatsWords: $random->getInt(0, 1) === 1,
                    hasSeveralValues: true,
                );
            } catch (UsageException) {
                continue;
            }
            ++$used;
            $values = [self::HOSTILE[$random->getInt(0, \count(self::HOSTILE) - 1)], "a\n./own\n", './own'];
            $values = \array_slice($values, 0, $random->getInt(1, 3));
            foreach (self::shells() as $name => $shell) {
                $line = (string) $parsed->command($values, 1, 1)->line;
                $this->execute($shell, $line);
                self::assertFileDoesNotExist($this->path('owned'), "{$name} of " . json_encode([$template, $line]));
            }
        }
        self::assertGreaterThan(0, $used);
    }

    /** A value is a word or a part of one, like a variable in double quotes at the same place. */
    public function testAValueDoesWhatAQuotedVariableDoesWhateverTheTemplate(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $used = 0;
        foreach (Scale::rounds(1.0, 50) as $_) {
            $template = self::randomTemplate($random, 'printf "[%s]" ', self::COMPARED_PIECES);
            try {
                $parsed = CommandTemplate::fromWords([$template]);
            } catch (UsageException) {
                continue;
            }
            if (str_contains($template, '$$')) {
                continue;
            }
            ++$used;
            $value = self::COMPARED_VALUES[$random->getInt(0, \count(self::COMPARED_VALUES) - 1)];
            $this->assertDoesWhatAVariableDoes($parsed, $value, $template);
        }
        self::assertGreaterThan(0, $used);
    }

    public function testAShellReadsAPrintedCommandAsTheWordsThatRun(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $script = $expected = '';
        for ($i = 0; $i < self::VALUES; ++$i) {
            $template = ['a{}'];
            for ($words = $random->getInt(1, 3); $words > 0; --$words) {
                $template[] = self::randomTemplate($random, '', self::WORD_PIECES);
            }
            $template = CommandTemplate::fromWords(
                $template,
                isQuoted: true,
                repeatsWords: true,
                hasSeveralValues: true,
            );
            $keys = $random->pickArrayKeys(self::COMPARED_VALUES, $random->getInt(1, 3));
            $values = array_values(array_intersect_key(self::COMPARED_VALUES, array_flip($keys)));
            $script .= "printf '%s\\0' {$template->text($values, 1, 1)}\n";
            $expected .= implode("\0", [...$template->command($values, 1, 1)->words(), '']);
        }
        foreach (self::shells() as $name => $shell) {
            self::assertSame($expected, $this->execute($shell, $script, ['x' => 'X'])->getOutput(), $name);
        }
    }

    public function testAValueDoesWhatAQuotedVariableDoesWhereItOnceDidNot(): void
    {
        foreach (self::COMPARED_TEMPLATES as $template) {
            foreach (self::COMPARED_VALUES as $value) {
                $this->assertDoesWhatAVariableDoes(CommandTemplate::fromWords([$template]), $value, $template);
            }
        }
    }

    private function assertDoesWhatAVariableDoes(CommandTemplate $parsed, string $value, string $template): void
    {
        foreach (self::shells() as $name => $shell) {
            self::assertSame(
                $this->outcome($shell, self::withVariable($parsed), $value),
                $this->outcome($shell, (string) $parsed->command([$value], 1, 1)->line, $value),
                "{$name} of " . json_encode([$template, $value]),
            );
        }
    }

    /** Closes open quotes, as a quoted value does. */
    private static function withVariable(CommandTemplate $template): string
    {
        return str_replace("'<value>'", '"${V}"', (string) $template->command(['<value>'], 1, 1)->line);
    }

    /**
     * @param list<string> $shell
     *
     * @return array{?int, string, array<string>} exit status, output, files
     */
    private function outcome(array $shell, string $script, string $value): array
    {
        $process = $this->execute($shell, $script, ['x' => 'X', 'V' => $value]);
        $files = [];
        foreach (array_diff(array_map(strval(...), (array) scandir($this->path())), ['.', '..']) as $name) {
            // A value with a line feed moves the line that the error of a shell names.
            $files[$name] = (string) preg_replace(
                '/^sh: (?:line )?\d+:/m',
                'sh:',
                (string) file_get_contents($this->path($name)),
            );
            unlink($this->path($name));
        }

        return [$process->getExitCode(), $process->getOutput(), $files];
    }

    /** @return array<string, list<string>> */
    private static function shells(): array
    {
        return array_filter(
            ['sh' => ['/bin/sh'], 'bash' => ['/bin/bash', '--posix']],
            static fn(array $shell): bool => is_executable($shell[0]),
        );
    }

    /**
     * @param list<string>          $shell
     * @param array<string, string> $variables
     */
    private function execute(array $shell, string $script, array $variables = []): Process
    {
        $process = new Process([...$shell, '-c', $script, 'sh'], $this->path(), $variables, '', 20.0);
        $process->run();

        return $process;
    }

    /** @param non-empty-list<string> $pieces */
    private static function randomTemplate(Randomizer $random, string $template, array $pieces): string
    {
        for ($length = $random->getInt(2, 14); $length > 0; --$length) {
            $template .= $pieces[$random->getInt(0, \count($pieces) - 1)];
        }

        return "{$template}{}";
    }

    /** @return list<string> strings of all bytes except NUL, mostly of characters that are special to a shell */
    private static function randomValues(int $count): array
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $values = [];
        while (\count($values) < $count) {
            $value = '';
            for ($length = $random->getInt(0, 40); $length > 0; --$length) {
                $value .= $random->getInt(0, 1) === 1
                    ? \chr($random->getInt(1, 255))
                    : "'\"\\$`(){}#;&|<> \n\t*?![]~=-"[$random->getInt(0, 25)];
            }
            $values[] = $value;
        }

        return $values;
    }
}
