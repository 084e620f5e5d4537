<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Attributes\DataProvider;

/** Runs each block in a folder of its own, which has the files of the page. */
trait TestsEachBlock
{
    /**
     * @param list<CodeBlock> $files
     * @param CodeBlock|null  $server first block of the page that starts a server
     */
    #[DataProvider('blocks')]
    public function testACodeBlockDoesWhatThePageSays(CodeBlock $block, array $files, ?CodeBlock $server): void
    {
        $this->assertDoesWhatThePageSays($block, $files, $server);
    }
}
