<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\Process\Libc;
use Spindle\Internal\Launcher\Process\Vector;

#[RequiresPhpExtension('FFI')]
final class VectorTest extends TestCase
{
    public function testAFullVectorHasAPointerToEachString(): void
    {
        $libc = new Libc();
        foreach ([new Vector($libc, false), new Vector($libc, $libc->hasArgz)] as $vector) {
            foreach ([['a'], ['a', '', "\xFF b", ''], array_fill(0, 1500, 'abc'), ['last']] as $strings) {
                $vector->fillJoined(implode("\0", $strings));
                self::assertSame($strings, self::strings($vector));
                $vector->fill($strings);
                self::assertSame($strings, self::strings($vector));
            }
        }
    }

    public function testGlibcSplitsStrings(): void
    {
        try {
            \FFI::cdef('const char *gnu_get_libc_version(void);');
        } catch (\FFI\Exception) {
            self::markTestSkipped('This is not glibc');
        }

        self::assertTrue((new Libc())->hasArgz);
    }

    /** @return list<mixed> the strings that the vector points to */
    private static function strings(Vector $vector): array
    {
        $libc = \FFI::cdef('const char *strstr(uint64_t, const char *);');
        $strings = [];
        for ($at = 0; ; $at += 8) {
            /** @var array{1: int} $address */
            $address = unpack('Q', substr(\FFI::string($vector->pointers, $at + 8), $at));
            if ($address[1] === 0) {
                return $strings;
            }
            // @phpstan-ignore method.notFound (FFI offers the declared functions as its methods)
            $strings[] = $libc->strstr($address[1], '');
        }
    }
}
