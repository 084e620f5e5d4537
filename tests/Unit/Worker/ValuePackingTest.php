<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Tests\Scale;
use Spindle\Worker\Internal\ValuePacking;
use Spindle\Worker\Internal\WorkerProtocol;

final class ValuePackingTest extends TestCase
{
    public function testPackedValuesAreRestored(): void
    {
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(Scale::seed()));
        for ($round = 0; $round < 200; ++$round) {
            $packing = new ValuePacking();
            $kinds = '';
            $values = [];
            for ($i = $random->getInt(1, 40); $i > 0; --$i) {
                $kind = $random->getInt(0, 4);
                $size = $random->getInt(0, 30);
                $value = $size === 0 ? '' : $random->getBytes($size);
                $packing->add($kind, $value);
                $kinds .= \chr($kind);
                $values[] = $value;
            }

            self::assertSame([$kinds, $values], ValuePacking::decode($packing->head() . $packing->bytes));
            self::assertSame([$kinds, $values], ValuePacking::decode("before{$packing->head()}{$packing->bytes}", 6));
            self::assertSame([\count($values), \strlen(implode('', $values))], [$packing->count(), $packing->size()]);
        }
    }

    public function testAnEmptyPackingIsEmpty(): void
    {
        $packing = new ValuePacking();

        self::assertSame(
            [0, 0, '', pack('V', 0)],
            [$packing->count(), $packing->size(), $packing->bytes, $packing->head()],
        );
    }

    /**
     * @param list<bool|int|float|string|null> $values
     */
    #[DataProvider('lists')]
    public function testAListIsTheSameAfterwards(array $values, bool $integers): void
    {
        $bytes = ValuePacking::encodeList($values, $integers);

        self::assertSame($values, ValuePacking::decodeList($bytes));
        self::assertSame($values, ValuePacking::decodeList("before{$bytes}", 6));
        [$kinds, $each] = ValuePacking::decode(ValuePacking::ofList($bytes));
        self::assertSame($values, array_map(
            static fn(string $kind, string $one): mixed
                => \ord($kind) === WorkerProtocol::STRING ? $one : unserialize($one),
            $values === [] ? [] : str_split($kinds),
            $each,
        ));
    }

    /** @return iterable<string, array{list<bool|int|float|string|null>, bool}> */
    public static function lists(): iterable
    {
        yield 'nothing' => [[], true];
        yield 'nothing, serialized' => [[], false];
        yield 'one integer' => [[7], true];
        yield 'integers' => [[0, -1, \PHP_INT_MAX, \PHP_INT_MIN, 255, 1 << 40], true];
        yield 'of all kinds' => [[1, 'q', '', null, true, false, -0.5, \INF, "\0a:0:{}"], false];
    }
}
