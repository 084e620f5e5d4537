<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

/** Runs the code blocks of the how-to guides but one, which needs two engines. None of their output contains a time. */
final class HowToBlocksTest extends CodeBlocksTestCase
{
    use TestsEachBlock;

    protected static function isItsPage(string $page): bool
    {
        return str_starts_with($page, 'docs/how-to/') && $page !== MoveTheEngineTest::PAGE;
    }

    public function testNoBlockShowsATime(): void
    {
        self::assertNotContains(true, array_map(
            static fn(array $arguments): bool => self::isTimed($arguments[0]),
            iterator_to_array(self::allBlocks()),
        ));
    }
}
