<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Bench;

use PHPUnit\Framework\TestCase;
use Spindle\Bench\Support\Table;

final class TableTest extends TestCase
{
    public function testColumnsLineUp(): void
    {
        $expected = <<<'MARKDOWN'
            |          | rate | 1 … 2 |
            | -------- | ---: | ----: |
            | Spindle  |  9.5 |     – |
            | xargs -P |  123 | 1 … 2 |

            MARKDOWN;

        self::assertSame(
            $expected,
            Table::markdown(['', 'rate', '1 … 2'], [['Spindle', '9.5', '–'], ['xargs -P', '123', '1 … 2']]),
        );
    }
}
