<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Figures over time in SVG, with one line per contestant. */
final class LineChart
{
    private const WIDTH = 860;
    private const HEIGHT = 320;
    private const LEFT = 56;
    private const TOP = 34;
    private const BOTTOM = 36;
    private const COLOURS = 6;

    /** Number of parts of an axis. */
    private const AXIS_PARTS = 5;

    /**
     * @param array<string, list<array{float, float}>> $lines by label: x and y of each point
     * @param string                                   $x     title of the x axis
     */
    public static function svg(string $title, array $lines, string $x = 'seconds'): string
    {
        $points = array_merge(...array_values($lines));
        [$right, $top] = [
            self::end([1e-9, ...array_column($points, 0)]),
            self::end([1e-9, ...array_column($points, 1)]),
        ];
        [$drawn, $number, $legend] = ['', 0, self::HEIGHT + 4];
        foreach ($lines as $label => $line) {
            $at = implode(
                ' ',
                array_map(
                    static fn(array $point): string
                        => self::left($point[0] / $right) . ',' . self::top($point[1] / $top),
                    $line,
                ),
            );
            $y = $legend + 18 * $number;
            $drawn .= "<polyline class=\"line\" stroke=\"var(--c{$number})\" points=\"{$at}\"/>\n";
            $drawn .= '<rect x="'
                . self::LEFT
                . "\" y=\"{$y}\" width=\"18\" height=\"4\" fill=\"var(--c{$number})\"/><text x=\""
                . (self::LEFT + 26)
                . '" y="'
                . ($y + 7)
                . '">'
                . Page::text($label)
                . "</text>\n";
            $number = ($number + 1) % self::COLOURS;
        }
        $height = $legend + 18 * \count($lines);

        return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 '
            . self::WIDTH
            . " {$height}\" width=\""
            . self::WIDTH
            . "\" role=\"img\">\n<title>"
            . Page::text($title)
            . "</title>\n<text class=\"title\" x=\"0\" y=\"16\">"
                . Page::text($title)
                . "</text>\n"
                . self::axes($right, $top, $x)
                . $drawn
                . "</svg>\n";
    }

    private static function axes(float $right, float $top, string $x): string
    {
        $axes = '';
        for ($i = 0; $i <= self::AXIS_PARTS; ++$i) {
            $share = $i / self::AXIS_PARTS;
            $y = self::top($share);
            $axes .= '<line class="axis" x1="'
                . self::LEFT
                . '" x2="'
                . self::WIDTH
                . "\" y1=\"{$y}\" y2=\"{$y}\"/><text class=\"dim\" x=\""
                . (self::LEFT - 8)
                . '" y="'
                . ($y + 4)
                . '" text-anchor="end">'
                . self::number($top * $share)
                . '</text>';
            $axes .= '<text class="dim" x="'
                . self::left($share)
                . '" y="'
                . (self::HEIGHT - self::BOTTOM + 18)
                . '" text-anchor="'
                . ($i === self::AXIS_PARTS ? 'end' : 'middle')
                . '">'
                . self::number($right * $share)
                . ($i === self::AXIS_PARTS ? ' ' . Page::text($x) : '')
                . "</text>\n";
        }

        return $axes;
    }

    /**
     * @param non-empty-array<float> $values
     *
     * @return float a round number, at least as large as all of them
     */
    private static function end(array $values): float
    {
        $most = max($values);
        $unit = 10 ** floor(log10($most));
        foreach ([1, 2, 2.5, 5] as $times) {
            if ($most <= $times * $unit) {
                return $times * $unit;
            }
        }

        return 10 * $unit;
    }

    private static function number(float $value): string
    {
        return rtrim(rtrim(number_format($value, 2), '0'), '.');
    }

    private static function left(float $share): float
    {
        return round(self::LEFT + $share * (self::WIDTH - self::LEFT), 1);
    }

    private static function top(float $share): float
    {
        return round(self::TOP + (1 - $share) * (self::HEIGHT - self::TOP - self::BOTTOM), 1);
    }
}
