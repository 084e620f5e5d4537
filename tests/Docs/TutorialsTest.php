<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\DataProvider;

/**
 * Follows each tutorial from its first block to its last, in one folder. The commands of a tutorial that uses
 * PostgreSQL or an engine find a new database or an engine in their environment.
 */
final class TutorialsTest extends CodeBlocksTestCase
{
    protected static function isItsPage(string $page): bool
    {
        return str_starts_with($page, 'docs/tutorials/');
    }

    /** @return iterable<string, array{string}> */
    public static function tutorials(): iterable
    {
        foreach (self::pages() as $page) {
            yield $page => [$page];
        }
    }

    #[DataProvider('tutorials')]
    public function testATutorialLeadsWhereItSays(string $page): void
    {
        $blocks = self::blocksOf($page);
        $content = implode(array_map(static fn(CodeBlock $block): string => $block->content, $blocks));
        if (str_contains($content, 'Spindle\Postgres')) {
            $this->workplace->useDatabase('');
        }
        if (str_contains($content, 'Spindle\Remote')) {
            $this->workplace->useEngine();
        }
        foreach ($blocks as $block) {
            if ($block->file !== null) {
                $this->workplace->put($block->file, $block->content);
            } elseif ($block->isCode()) {
                $this->assertDoesWhatThePageSays($block, [], CodeBlock::serverOf($blocks));
            }
        }
    }
}
