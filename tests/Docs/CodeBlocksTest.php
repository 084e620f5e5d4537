<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\ExpectationFailedException;

/** Runs the code blocks of all pages except the how-to guides and the tutorials. */
final class CodeBlocksTest extends CodeBlocksTestCase
{
    use TestsEachBlock;

    /** Another process may delay a command, so a time must be as shown in one of these attempts. */
    private const ATTEMPTS = 3;

    protected static function isItsPage(string $page): bool
    {
        return !str_starts_with($page, 'docs/how-to/') && !str_starts_with($page, 'docs/tutorials/');
    }

    /** @return iterable<string, array{CodeBlock, list<CodeBlock>, CodeBlock|null}> */
    public static function timedBlocks(): iterable
    {
        foreach (self::allBlocks() as $name => $arguments) {
            if (self::isTimed($arguments[0])) {
                yield $name => $arguments;
            }
        }
    }

    /**
     * @param list<CodeBlock> $files
     * @param CodeBlock|null  $server first block of the page that starts a server
     */
    #[DataProvider('timedBlocks')]
    #[Group('quiet')]
    public function testACodeBlockThatShowsATimeDoesWhatThePageSays(
        CodeBlock $block,
        array $files,
        ?CodeBlock $server,
    ): void {
        for ($attempt = 1;; ++$attempt) {
            try {
                $this->assertDoesWhatThePageSays($block, $files, $server);

                return;
            } catch (ExpectationFailedException $failure) {
                if ($attempt === self::ATTEMPTS) {
                    throw $failure;
                }
            }
        }
    }
}
