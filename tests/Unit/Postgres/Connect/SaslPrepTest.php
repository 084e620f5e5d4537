<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Connect\SaslPrep;

#[RequiresPhpExtension('intl')]
final class SaslPrepTest extends TestCase
{
    /** @return iterable<string, array{string, string}> */
    public static function passwords(): iterable
    {
        yield 'ASCII, also what is prohibited' => ["a b\x07\x7f", "a b\x07\x7f"];
        yield 'a soft hyphen' => ["I\u{AD}X", 'IX'];
        yield 'another case' => ["\u{DC}SER", "\u{DC}SER"];
        yield 'a compatibility character' => ["\u{AA}", 'a'];
        yield 'a number in one character' => ["\u{2168}", 'IX'];
        yield 'another space' => ["a\u{A0}b", 'a b'];
        yield 'a space without width' => ["a\u{200B}b", 'a b'];
        yield 'characters that combine' => ["e\u{301}", "\u{E9}"];
        yield 'a prohibited character stays as it is, and so do others' => ["\u{2168}\u{7}", "\u{2168}\u{7}"];
        yield 'a private one' => ["\u{2168}\u{E000}", "\u{2168}\u{E000}"];
        yield 'one that is newer' => ["\u{2168}\u{1F600}", "\u{2168}\u{1F600}"];
        yield 'one that is none' => ["\u{2168}\u{378}", "\u{2168}\u{378}"];
        yield 'two directions' => ["\u{627}1\u{2168}", "\u{627}1\u{2168}"];
        yield 'from the right' => ["\u{FE91}1\u{628}", "\u{628}1\u{628}"];
        yield 'nothing that is left' => ["\u{AD}", "\u{AD}"];
        yield 'no UTF-8' => ["\xE9\xA0", "\xE9\xA0"];
    }

    #[DataProvider('passwords')]
    public function testPasswordsAreNormalizedAsByPostgres(string $password, string $prepared): void
    {
        self::assertSame(bin2hex($prepared), bin2hex(SaslPrep::prepare($password)));
    }
}
