<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\TransactionEndDetector;

final class TransactionEndDetectorTest extends TestCase
{
    public function testAScriptThatIsTooLongForItsPatternMayHaveEndedTheTransaction(): void
    {
        $detector = new TransactionEndDetector();
        $detector->recordTag('ROLLBACK');
        $limit = (string) ini_set('pcre.backtrack_limit', '1000');
        try {
            self::assertTrue($detector->hasEnded('ROLLBACK AND' . str_repeat("\n--", 1_000) . "\nCHAIN"));
        } finally {
            ini_set('pcre.backtrack_limit', $limit);
        }
        self::assertFalse($detector->hasEnded('ROLLBACK TO SAVEPOINT a; SELECT 1'));
    }
}
