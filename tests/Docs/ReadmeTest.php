<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\TestCase;

/** README.md is short enough to be read to its end. */
final class ReadmeTest extends TestCase
{
    private const MAX_LINES = 120;
    private const MAX_SNIPPETS = 5;
    private const MAX_SNIPPET_LINES = 8;

    public function testThePageAndItsSnippetsAreShort(): void
    {
        $page = (string) file_get_contents(Workplace::project() . '/README.md');
        $snippets = array_filter(
            CodeBlock::allIn($page),
            static fn(CodeBlock $block): bool => $block->language === 'php',
        );

        self::assertLessThanOrEqual(self::MAX_LINES, substr_count($page, "\n"));
        self::assertLessThanOrEqual(self::MAX_SNIPPETS, \count($snippets));
        foreach ($snippets as $snippet) {
            self::assertLessThanOrEqual(self::MAX_SNIPPET_LINES, substr_count($snippet->content, "\n"));
            self::assertTrue($snippet->printed() !== null || $snippet->file !== null, 'The page shows what it prints');
        }
    }
}
