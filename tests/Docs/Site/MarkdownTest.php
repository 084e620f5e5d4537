<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Site;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Site\Markdown;
use Spindle\Site\ThemedPictures;

final class MarkdownTest extends TestCase
{
    private const PAGE = <<<'MARKDOWN'
        ---
        title: Short
        order: 2
        ---
        # How to `run()` it

        <!-- [no](comment.md) -->
        A first paragraph
        with a [link](a.md). More.

        ```text
        # [no](block.md)
        ```

        ## Twice
        ## Twice

        Call `[no](code.md)`, [`b()`](b.md#x) or `Known`.
        <img src="c.svg" alt="">
        MARKDOWN;

    public function testFrontMatterIsNoPartOfThePage(): void
    {
        $page = new Markdown(self::PAGE);

        self::assertSame(['title' => 'Short', 'order' => '2'], $page->fields);
        self::assertStringStartsWith('# How to', $page->body);
        self::assertSame('How to run() it', $page->title());
        self::assertSame('A first paragraph with a link. More.', $page->introduction());
    }

    public function testHeadingsAreThoseOutsideOfCode(): void
    {
        self::assertSame(
            [[1, 'how-to-run-it'], [2, 'twice'], [2, 'twice-1']],
            array_map(
                static fn(array $heading): array => [$heading['level'], $heading['slug']],
                (new Markdown(self::PAGE))->headings(),
            ),
        );
    }

    /** @return iterable<string, array{string, string}> */
    public static function slugs(): iterable
    {
        yield 'letters' => ['Résumé of It', 'résumé-of-it'];
        yield 'punctuation' => ['What, and why?', 'what-and-why'];
        yield 'signs between blanks' => ['a & b', 'a--b'];
        yield 'dashes' => ['--jsonl, and _x', '--jsonl-and-_x'];
    }

    #[DataProvider('slugs')]
    public function testAnchorsAreThoseOfGitHub(string $heading, string $slug): void
    {
        self::assertSame($slug, Markdown::slug($heading));
    }

    public function testLinksAreReplacedOutsideOfCode(): void
    {
        $seen = [];
        $text = (new Markdown(self::PAGE))->withLinks(static function (string $link) use (&$seen): string {
            $seen[] = $link;

            return 'new';
        });

        self::assertSame(['a.md', 'b.md#x', 'c.svg'], $seen);
        self::assertStringContainsString('[link](new)', $text);
        self::assertStringContainsString('[`b()`](new)', $text);
        self::assertStringContainsString('<img src="new" alt="">', $text);
        self::assertStringContainsString('[no](block.md)', $text);
    }

    public function testInlineCodeBecomesALinkExceptInHeadingsAndLinks(): void
    {
        $seen = [];
        $text = (new Markdown(self::PAGE))->withLinkedCode(static function (string $code) use (&$seen): ?string {
            $seen[] = $code;

            return $code === 'Known' ? '/known.md' : null;
        });

        self::assertSame(['[no](code.md)', 'Known'], $seen);
        self::assertStringContainsString('[`b()`](b.md#x) or [`Known`](/known.md).', $text);
    }

    public function testCodeOfAnotherToolIsNoLinkInATableThatComparesIt(): void
    {
        $page = <<<'MD'
            Before `Known`.

            | amphp | Spindle |
            |---|---|
            | a `Task` | no `Known` |
            | `a \| Task` | `c \| d`, `Known` |

            After `Known`.
            MD;
        $target = static fn(string $code): ?string => \in_array($code, ['Task', 'Known'], true) ? '/k.md' : null;

        $linked = str_replace('`Known`', '[`Known`](/k.md)', $page);
        self::assertSame($linked, (new Markdown($page))->withLinkedCode($target));
    }

    public function testAPictureHasAnImageForEachTheme(): void
    {
        $picture = <<<'HTML'
            <picture>
              <source media="(prefers-color-scheme: dark)" srcset="/dark.svg">
              <img alt="Rates" src="/light.svg" width="700">
            </picture>
            HTML;

        self::assertSame(
            '<img class="only-light" alt="Rates" src="/light.svg" width="700">'
                . '<img class="only-dark" alt="Rates" src="/dark.svg" width="700">',
            ThemedPictures::in($picture),
        );
    }
}
