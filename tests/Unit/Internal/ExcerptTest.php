<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Excerpt;

final class ExcerptTest extends TestCase
{
    #[TestWith(['abc', 'abc'])]
    #[TestWith(['abcd', 'abc…'])]
    #[TestWith(["ab\u{E4}d", 'ab…'])]
    #[TestWith(["\u{E4}bc", "\u{E4}b…"])]
    #[TestWith(["a\u{20AC}", 'a…'])]
    #[TestWith(["\xFFabc", "\xFFab…"])]
    public function testALongTextHasItsFirstWholeCharacters(string $text, string $excerpt): void
    {
        self::assertSame($excerpt, Excerpt::of($text, 3));
    }
}
