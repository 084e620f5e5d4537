<?php

declare(strict_types=1);

namespace Aircraft;

/** Invented aircraft for demonstrations and measurements, always the same ones. */
final class Fleet
{
    private const TYPES = [
        'Airbus A320',
        'Airbus A350-900',
        'ATR 72',
        'Boeing 737-800',
        'Boeing 777F',
        'Cessna 172',
        'Embraer 195',
        'Saab 340',
    ];

    private function __construct() {}

    /** @return \Generator<int, string> CSV for {@see Transfer::import()}, in pieces */
    public static function csv(int $count): \Generator
    {
        yield "number,title,serial_number,assembly_date\n";
        for ($i = 0; $i < $count; ++$i) {
            $date = gmdate('Y-m-d', ($i * 7_919 % 18_000) * 86_400);
            yield \sprintf("S-%06d,%s,MSN %d,%s\n", $i, self::TYPES[$i * 31 % \count(self::TYPES)], 10_000 + $i, $date);
        }
    }
}
