<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\Assert;

/** Output as shown in the docs. A line "..." stands for any lines, and "..." within a line for any text. */
final class ExpectedOutput
{
    public static function assertMatches(string $expected, string $actual, string $message): void
    {
        $matches = preg_match(self::pattern(rtrim($expected)), rtrim($actual) . "\n") === 1;

        Assert::assertSame($expected, $matches ? $expected : $actual, $message);
    }

    private static function pattern(string $expected): string
    {
        $lines = array_map(
            static fn(string $line): string => $line === '...'
                ? '(?:.*\n)*'
                : str_replace('\.\.\.', '.*', preg_quote(rtrim($line), '/')) . '\h*\n',
            explode("\n", $expected),
        );

        return '/\A' . implode('', $lines) . '\z/';
    }
}
