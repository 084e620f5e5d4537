<?php

declare(strict_types=1);

namespace Spindle\Bench\Contexts;

/** A small mix of typical work: calls, arrays, strings, numbers. The result is the same on every PHP. */
final class CpuWork
{
    /** @return array{seconds: float, result: string} */
    public static function run(int $iterations): array
    {
        $begin = hrtime(true);
        [$values, $text, $sum] = [[], '', 0.0];
        for ($i = 0; $i < $iterations; ++$i) {
            $key = 'key' . $i % 512;
            $values[$key] = ($values[$key] ?? 0) + self::mix($i);
            $text = substr($text . \chr(65 + $i % 26), -64);
            $sum += sqrt($i) * sin($i);
        }
        ksort($values);

        return [
            'seconds' => (hrtime(true) - $begin) / 1e9,
            'result' => md5(serialize([$values, $text, round($sum, 3)])),
        ];
    }

    private static function mix(int $number): int
    {
        return ($number * 31 + 7) % 1009;
    }
}
