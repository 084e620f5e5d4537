<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Worker;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\Scale;
use Spindle\Worker\Internal\Packing;

final class PackingTest extends TestCase
{
    public function testWhatGoesInComesOut(): void
    {
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(Scale::seed()));
        for ($round = 0; $round < 200; ++$round) {
            $packing = new Packing();
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

            self::assertSame([$kinds, $values], Packing::split($packing->head() . $packing->bytes()));
            self::assertSame([$kinds, $values], Packing::split("before{$packing->head()}{$packing->bytes()}", 6));
            self::assertSame([\count($values), \strlen(implode('', $values))], [$packing->count(), $packing->size()]);
        }
    }

    public function testAnEmptyOneIsEmpty(): void
    {
        $packing = new Packing();

        self::assertSame([0, 0, '', pack('V', 0)], [$packing->count(), $packing->size(), $packing->bytes(), $packing->head()]);
    }

    public function testItKnowsWhichKindsItHas(): void
    {
        $packing = new Packing();
        $packing->add(3, 'x');

        self::assertTrue($packing->has(3));
        self::assertFalse($packing->has(2));
    }
}
