<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;

final class CodeBlockTest extends TestCase
{
    public function testBlocksAreFoundWithTheirLinesLanguagesAndContents(): void
    {
        $blocks = CodeBlock::allIn(<<<'MARKDOWN'
            # Page

            ```php
            echo 1;

            ```
            Text with `code` and ```inline```.

            - a list
              ```console
              $ true
                indented
              ```

            ~~~~text
            ```php
            not a block
            ```
            ~~~~
            MARKDOWN);

        self::assertSame(
            [
                [3, 'php', "echo 1;\n\n"],
                [10, 'console', "\$ true\n  indented\n"],
                [15, 'text', "```php\nnot a block\n```\n"],
            ],
            array_map(static fn(CodeBlock $block): array => [$block->line, $block->language, $block->content], $blocks),
        );
    }

    public function testDirectivesBelongToTheNextBlockOnly(): void
    {
        $blocks = CodeBlock::allIn(
            "<!-- test: file=a/b.txt -->\n```text\nx\n```\n\n"
            . "<!-- test: exit=3 skip-run because it takes an hour -->\n\n```console\n$ x\n```\n\n```php\n```\n",
        );

        self::assertSame(
            [['a/b.txt', null, 0], [null, 'it takes an hour', 3], [null, null, 0]],
            array_map(
                static fn(CodeBlock $block): array => [$block->file, $block->skipped, $block->exitStatus],
                $blocks,
            ),
        );
    }

    public function testABlockMayRunInAFolderAndBesideWhatThePageServes(): void
    {
        [$serving, $asking] = CodeBlock::allIn(
            "<!-- test: in=examples/x serves=127.0.0.1:80/y -->\n```console\n$ x\n```\n"
            . "<!-- test: in=examples/x served -->\n```console\n$ y\n```\n",
        );

        self::assertSame(
            ['examples/x', '127.0.0.1:80/y', false],
            [$serving->folder, $serving->serves, $serving->isServed],
        );
        self::assertSame(['examples/x', null, true], [$asking->folder, $asking->serves, $asking->isServed]);
    }

    public function testTheCommandOfABlockMayStay(): void
    {
        [$staying, $ending] = CodeBlock::allIn("<!-- test: stays -->\n```console\n$ x\n```\n```console\n$ y\n```\n");

        self::assertSame([true, false], [$staying->stays, $ending->stays]);
    }

    public function testFilesAndDataAreNoCode(): void
    {
        $blocks = CodeBlock::allIn("<!-- test: file=a -->\n```php\n```\n```json\n```\n```php\n```\n```sql\n```\n");

        self::assertSame(
            [false, false, true, true],
            array_map(static fn(CodeBlock $block): bool => $block->isCode(), $blocks),
        );
    }

    /** @return iterable<string, array{string}> */
    public static function badDirectives(): iterable
    {
        yield 'unknown' => ['later'];
        yield 'almost one' => ['servedby'];
        yield 'no reason' => ['skip-run'];
        yield 'an empty reason' => ['skip-run because '];
        yield 'a status that is no number' => ['exit=x'];
    }

    #[DataProvider('badDirectives')]
    public function testADirectiveThatIsNotUnderstoodIsAnError(string $directive): void
    {
        $this->expectException(\UnexpectedValueException::class);
        $this->expectExceptionMessageMatches('/^Line 2: .* is no directive/');

        CodeBlock::allIn("<!-- test: {$directive} -->\n```php\n```\n");
    }

    public function testCommandsComeWithTheOutputThatFollowsThem(): void
    {
        [$block] = CodeBlock::allIn("```console\n$ a \\\n  b\n1\n\n2\n$ c\n$ d\n3\n```\n");

        self::assertSame([["a \\\n  b", "1\n\n2\n"], ['c', ''], ['d', "3\n"]], $block->commands());
    }

    public function testCommentsOfAPhpBlockShowItsOutput(): void
    {
        [$shown, $other] = CodeBlock::allIn(
            "```php\necho 1, 2; // prints 12\n// prints a: ... s\n```\n```php\necho 1; // one\n```\n",
        );

        self::assertSame("12\na: ... s\n", $shown->printed());
        self::assertNull($other->printed());
    }

    /** @return iterable<string, array{string, string, bool}> */
    public static function outputs(): iterable
    {
        yield 'the same' => ["a\nb\n", "a\nb\n", true];
        yield 'other text' => ["a\nb\n", "a\nc\n", false];
        yield 'a line too many' => ["a\n", "a\nb\n", false];
        yield 'a line too few' => ["a\nb\n", "a\n", false];
        yield 'a part of a line' => ["a\n", "ab\n", false];
        yield 'blanks at the end' => ["a\n", "a  \n\n", true];
        yield 'any lines' => ["a\n...\nd\n", "a\nb\nc\nd\n", true];
        yield 'no line for any lines' => ["a\n...\n", "a\n", true];
        yield 'another end after any lines' => ["...\nd\n", "a\ne\n", false];
        yield 'anything in a line' => ["took ... s\n", "took 1.5 s\n", true];
        yield 'anything, but in one line' => ["took ... s\n", "took 1\n2 s\n", false];
        yield 'special characters' => ["[a.c] (1+1)?\n", "[abc] (1+1)?\n", false];
    }

    #[DataProvider('outputs')]
    public function testOutputIsComparedWithItsWildcards(string $expected, string $actual, bool $matches): void
    {
        if (!$matches) {
            $this->expectException(AssertionFailedError::class);
        }

        ExpectedOutput::assertMatches($expected, $actual, 'Output');
    }
}
