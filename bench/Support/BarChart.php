<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Horizontal bars in SVG, one per contestant. */
final class BarChart
{
    private const WIDTH = 940;
    private const LABELS = 390;
    private const VALUES = 90;
    private const ROW = 26;
    private const TOP = 30;
    private const COLOURS = 6;

    /** @param array<string, float|null> $values by label; null for a missing measurement */
    public static function svg(string $title, array $values, int $decimals = 0): string
    {
        $values = array_filter($values, is_float(...));
        $largest = max([1e-9, ...array_values($values)]);
        [$rows, $number] = ['', 0];
        foreach ($values as $label => $value) {
            $y = self::TOP + self::ROW * $number;
            $length = round((self::WIDTH - self::LABELS - self::VALUES) * max(0.0, $value) / $largest, 1);
            $rows .= \sprintf(
                '<text x="%d" y="%d" text-anchor="end">%s</text>'
                    . '<rect x="%d" y="%d" width="%s" height="%d" fill="var(--c%d)"/>'
                    . "<text x=\"%s\" y=\"%d\">%s</text>\n",
                self::LABELS - 8,
                $y + 16,
                Page::text($label),
                self::LABELS,
                $y + 3,
                $length,
                self::ROW - 8,
                $number % self::COLOURS,
                self::LABELS + $length + 6,
                $y + 16,
                number_format($value, $decimals),
            );
            ++$number;
        }
        $height = self::TOP + self::ROW * $number + 4;

        return \sprintf(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\">\n"
                . "<title>%s</title>\n<text class=\"title\" x=\"0\" y=\"16\">%s</text>\n%s</svg>\n",
            self::WIDTH,
            $height,
            self::WIDTH,
            Page::text($title),
            Page::text($title),
            $rows,
        );
    }
}
