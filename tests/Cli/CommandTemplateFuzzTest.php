<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Random\Engine\Mt19937;
use Random\Randomizer;
use Spindle\Cli\Internal\CommandTemplate;
use Spindle\Cli\Internal\UsageException;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Scale;
use Symfony\Component\Process\Process;

/** What is put into a shell line is data to real shells, wherever it stands. */
final class CommandTemplateFuzzTest extends TestCase
{
    use OwnDirectory;

    private const VALUES = 300;
    private const TEMPLATES = 5000;

    private const HOSTILE = [
        '$(touch owned)', '`touch owned`', "'; touch owned; '", '"; touch owned; "', "\ntouch owned\n", ')`touch owned`', '; touch owned #',
        "'\"; touch owned; \"'", '}; touch owned', "\\'; touch owned; \\'", "'\$(touch owned)'", '"$(touch owned)"', ')) ; touch owned', "a\nE\ntouch owned\n",
    ];

    /** What a random template is made of; nothing of it runs a program that is there. */
    private const PIECES = [
        '{}', '{}', '{}', 'a', 'x ', ' ', ' ', "\n", "\t", '#', "'", '"', "'", '"', '`', '\\', "\\\n", '$', '$(', '$(', '"$(', '$((', '))', ')', ')', '(', '((', '${', '${x', '${x:-', '}', '{', '$x', '$#',
        '$$', '$[', ']', '$\'', '$"', ';', '&', '|', '<', '<<', '<<E', "\nE\n", 'case x in ', 'x) ', ';;', ' esac', ' && ', ' || ', 'echo ', '=', '!', '~', '*', '"{}"', "'{}'", '$({})', 'if ', ' then ', ' fi', '1', '-', ':', '/',
    ];

    /** @return iterable<string, array{list<string>, string, int}> shell, template, how often it prints the value */
    public static function templates(): iterable
    {
        $templates = [
            ['printf "%s\0" {}', 1],
            ['printf "%s\0" "{}"', 1],
            ["printf '%s\\0' '{}'", 1],
            ["printf '%s\\0' \"\"{}'' \"{}\"'' {}\"\"", 3],
            ['printf "%s\0" "${none}{}" "$none""{}" "$(:){}" `:`{}', 4],
            ['x=$(printf "%s." {}); printf "%s\0" "${x%.}"', 1],
            ['x=$(printf "%s." "{}"); printf "%s\0" "${x%.}"', 1],
            ["x=\$(y=\$(printf '%s.' '{}'); printf '%s' \"\$y\"); printf '%s\\0' \"\${x%.}\"", 1],
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
        $script = implode("\n", array_map(static fn(string $value): string => (string) $parsed->command($value, 1, 1)->line, $values));

        $process = $this->execute($shell, $script);

        $expected = implode('', array_map(static fn(string $value): string => str_repeat("{$value}\0", $count), $values));
        self::assertSame([bin2hex($expected), ''], [bin2hex($process->getOutput()), $process->getErrorOutput()]);
        self::assertSame(['.', '..'], scandir($this->path()));
    }

    public function testNothingOfAValueIsExecutedWhateverTheTemplate(): void
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $used = 0;
        for ($i = 0, $count = Scale::of(self::TEMPLATES); $i < $count; ++$i) {
            $template = self::randomTemplate($random);
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
                $line = (string) $parsed->command($value, 1, 1)->line;
                $this->execute($shell, $line);
                self::assertFileDoesNotExist($this->path('owned'), "{$name} of " . json_encode([$template, $line]));
            }
        }
        self::assertGreaterThan(0, $used);
    }

    /** @return array<string, list<string>> */
    private static function shells(): array
    {
        return array_filter(
            ['sh' => ['/bin/sh'], 'bash' => ['/bin/bash', '--posix']],
            static fn(array $shell): bool => is_executable($shell[0]),
        );
    }

    /** @param list<string> $shell */
    private function execute(array $shell, string $script): Process
    {
        $process = new Process([...$shell, '-c', $script, 'sh'], $this->path(), null, '', 20.0);
        $process->run();

        return $process;
    }

    private static function randomTemplate(Randomizer $random): string
    {
        $template = 'echo ';
        for ($length = $random->getInt(2, 14); $length > 0; --$length) {
            $template .= self::PIECES[$random->getInt(0, \count(self::PIECES) - 1)];
        }

        return "{$template}{}";
    }

    /** @return list<string> of all bytes but NUL, mostly those that are special to a shell */
    private static function randomValues(int $count): array
    {
        $random = new Randomizer(new Mt19937(Scale::seed()));
        $values = [];
        while (\count($values) < $count) {
            $value = '';
            for ($length = $random->getInt(0, 40); $length > 0; --$length) {
                $value .= $random->getInt(0, 1) === 1 ? \chr($random->getInt(1, 255)) : "'\"\\$`(){}#;&|<> \n\t*?![]~=-"[$random->getInt(0, 25)];
            }
            $values[] = $value;
        }

        return $values;
    }
}
