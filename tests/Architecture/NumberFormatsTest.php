<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

final class NumberFormatsTest extends TestCase
{
    /** The conversions F and h of sprintf() always write a point. The others write the separator of setlocale(). */
    public function testNoFormatHasTheDecimalSeparatorOfTheLocale(): void
    {
        $root = \dirname(__DIR__, 2) . '/src';
        $formats = [];
        foreach (PhpFiles::in($root) as $path) {
            foreach (\PhpToken::tokenize((string) file_get_contents("{$root}/{$path}")) as $token) {
                if (
                    $token->is([\T_CONSTANT_ENCAPSED_STRING, \T_ENCAPSED_AND_WHITESPACE])
                    && preg_match('/%[-+ 0-9]*(?:\.\d++)?[eEfgG]\b/', $token->text) === 1
                ) {
                    $formats[] = "{$path}:{$token->line}: {$token->text}";
                }
            }
        }

        self::assertSame([], $formats);
    }
}
