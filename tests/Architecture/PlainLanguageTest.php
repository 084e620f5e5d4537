<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\OwnDirectory;

/** Examples for the check of plain language. */
final class PlainLanguageTest extends TestCase
{
    use OwnDirectory;

    /** @return iterable<string, array{string, list<string>}> */
    public static function reportedComments(): iterable
    {
        yield 'a question word first' => ['/** What came of it. */', ['begins with "What"']];
        yield 'a pronoun first' => ['// It ends here.', ['begins with "It"']];
        yield 'a preposition first' => ["// of a task's input", ['begins with "of"']];
        yield 'a person for a thing' => [
            '/** Returns the fiber, for nobody waits. */',
            ['"nobody": the name of the thing'],
        ];
        yield 'a tag' => ['/** @param int $n who has it */', ['"who": "it", or the name of the thing']];
        yield 'the second of two lines' => [
            "// Returns the value,\n// for whoever waits.",
            ['"whoever": "it", or the name of the thing'],
        ];
        yield 'a pronoun in the second paragraph' => [
            "/**\n * Returns it.\n *\n * They wait. */",
            ['begins with "They"'],
        ];
        yield 'a plain sentence' => ['/** Returns the number of workers that have started. */', []];
        yield 'a word in code' => ['/** Reads `nobody` and {@see Somebody}, which "whoever" quotes. */', []];
        yield 'a hyphen' => ['/** It-like names are no pronouns. */', []];
    }

    /** @param list<string> $rules */
    #[DataProvider('reportedComments')]
    public function testCommentsAreReported(string $comment, array $rules): void
    {
        $found = $this->check('Example.php', "<?php\n\n{$comment}\n\$example = 1;\n");

        self::assertSame($rules, array_column($found, 'rule'));
        self::assertSame(array_fill(0, \count($rules), 3), array_column($found, 'line'));
    }

    public function testLongLinesAreReportedInCodeAndProse(): void
    {
        $code = str_pad('$a = 1; ', 121, '// word ');
        $words = str_repeat('word ', 25);

        self::assertSame(
            [['line' => 2, 'rule' => 'long line', 'text' => '121 columns']],
            $this->check('Example.php', "<?php\n{$code}\n"),
        );
        self::assertSame(
            [['line' => 2, 'rule' => 'long line', 'text' => '126 columns']],
            $this->check('page.md', "| {$words} |\n{$words}x\n"),
        );
    }

    public function testALongLineMayBeAnExceptionWithAReason(): void
    {
        $url = 'https://example.org/' . str_repeat('a', 101);
        file_put_contents($this->path('Example.php'), "<?php\n    // {$url}\n");
        $reasons = ['// https://example.org/' => 'a URL', '// https://example.com/' => 'a URL'];

        $language = new PlainLanguage($this->path(), ['Example.php' => $reasons]);

        self::assertSame([], $language->check('Example.php'));
        self::assertSame(['Example.php: // https://example.com/'], $language->unusedExceptions());
    }

    public function testProseIsReportedOutsideOfCode(): void
    {
        $found = $this->check('page.md', "Nobody waits.\n```php\n// nobody\n```\nThe name `nobody` is a word.\n");

        self::assertSame(
            [['line' => 1, 'rule' => '"Nobody": the name of the thing', 'text' => 'Nobody waits.']],
            $found,
        );
    }

    public function testNothingOfTheProjectIsReported(): void
    {
        $language = new PlainLanguage(\dirname(__DIR__, 2));
        $reports = [];
        foreach ($language->files() as $file) {
            foreach ($language->check($file) as $found) {
                $reports[] = "{$file}:{$found['line']}: {$found['rule']}: {$found['text']}";
            }
        }

        self::assertSame([], $reports);
        self::assertSame([], $language->unusedExceptions());
        self::assertSame([], $language->sharedNames());
    }

    /** @return list<array{line: int, rule: string, text: string}> */
    private function check(string $file, string $text): array
    {
        file_put_contents($this->path($file), $text);

        return (new PlainLanguage($this->path()))->check($file);
    }
}
