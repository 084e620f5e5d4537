<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\TestCase;

final class WorkplaceTest extends TestCase
{
    /** Pages show results with assert(), which PHP ignores with the settings for production. */
    public function testAFalseAssertionEndsAScript(): void
    {
        $workplace = new Workplace();
        try {
            $file = $workplace->put('block.php', '<?php assert(1 + 1 === 3);');

            self::assertStringContainsString('1 + 1 === 3', $workplace->script($file)->getErrorOutput());
            self::assertStringContainsString('1 + 1 === 3', $workplace->php($file)->getErrorOutput());
        } finally {
            $workplace->remove();
        }
    }
}
