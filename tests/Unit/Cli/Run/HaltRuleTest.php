<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\HaltRule;

final class HaltRuleTest extends TestCase
{
    #[TestWith(['16.1%', 1000, 161])]
    #[TestWith(['16.1%', 1001, 162])]
    #[TestWith(['0.07%', 10_000, 7])]
    #[TestWith(['0.000001%', 100_000_000, 1])]
    #[TestWith(['33.333333%', 3, 1])]
    #[TestWith(['100%', 7, 7])]
    public function testAPercentageIsExact(string $percentage, int $total, int $limit): void
    {
        $rule = HaltRule::parse("soon,fail={$percentage}");

        self::assertFalse($rule?->isReached(0, $limit - 1, $total));
        self::assertTrue($rule->isReached(0, $limit, $total));
    }

    public function testEachPercentageOfOneDecimalIsExact(): void
    {
        for ($tenths = 1; $tenths <= 1000; ++$tenths) {
            $rule = HaltRule::parse(\sprintf('soon,done=%d.%d%%', intdiv($tenths, 10), $tenths % 10));

            self::assertTrue($rule?->isReached($tenths, 0, 1000), "{$tenths} of 1000");
            self::assertFalse($rule->isReached($tenths - 1, 0, 1000), "{$tenths} of 1000");
        }
    }
}
