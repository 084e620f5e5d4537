<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Types;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Types\BuiltInTypes;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Tests\Postgres\TypeCases;
use Spindle\Tests\Scale;

final class RoundTripTest extends TestCase
{
    #[DataProvider('types')]
    public function testAnEncodedValueIsDecodedUnchanged(int $oid): void
    {
        $types = new Types();
        $values = new RandomValues(Scale::seed());
        for ($i = Scale::of(2000); $i > 0; --$i) {
            $value = $values->of($oid);
            $text = $types->encode($oid, $value, 1) ?? self::fail('it became NULL');
            $came = $types->decode($oid, Types::kind($oid) === Types::BYTEA ? Types::hex($text) : $text);
            self::assertSame(TypeCases::comparable($value), TypeCases::comparable($came));
        }
    }

    #[DataProvider('types')]
    public function testACopiedValueIsDecodedUnchanged(int $oid): void
    {
        $types = new Types();
        $values = new RandomValues(Scale::seed());
        for ($i = Scale::of(500); $i > 0; --$i) {
            $value = $values->of($oid);
            $columns = explode("\t", substr($types->copyRow([25, $oid, 25], ['left', $value, null], 1), 0, -1));
            self::assertCount(3, $columns);
            self::assertSame(['left', '\N'], [$columns[0], $columns[2]]);
            self::assertDoesNotMatchRegularExpression('/[\n\r]/', $columns[1]);
            $text = strtr($columns[1], ['\\\\' => '\\', '\t' => "\t", '\n' => "\n", '\r' => "\r"]);
            self::assertSame(TypeCases::comparable($value), TypeCases::comparable($types->decode($oid, $text)));
        }
    }

    /** @return iterable<string, array{int}> */
    public static function types(): iterable
    {
        foreach ([16, 17, 20, 25, 701, 3802, 1082, 1114, 1184, 1186, 1700, 603] as $oid) {
            yield BuiltInTypes::SCALARS[$oid][1] => [$oid];
        }
        foreach ([1000, 1001, 1016, 1009, 1022, 3807, 1182, 1115, 1185, 1187, 1020, 3907, 3909, 6151, 6153] as $oid) {
            yield "an array of {$oid}" => [$oid];
        }
        foreach (BuiltInTypes::RANGES + BuiltInTypes::MULTIRANGES as $oid => [$name]) {
            yield $name => [$oid];
        }
    }
}
