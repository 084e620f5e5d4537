<?php

declare(strict_types=1);

namespace Spindle\Site\Chart;

/** Horizontal bars as SVG, with the bars of Spindle in another colour. */
final readonly class BarChart
{
    private const WIDTH = 720;
    private const LABELS = 230;
    private const VALUES = 100;
    private const ROW = 26;
    private const BAR = 16;
    private const TOP = 34;
    private const BOTTOM = 26;

    /**
     * @param array<string, float> $values by label, all positive
     * @param string               $note   text below the bars
     */
    public function __construct(private string $title, private array $values, private string $note) {}

    public function svg(Theme $theme): string
    {
        $colours = $theme->colours();
        $height = self::TOP + self::ROW * \count($this->values) + self::BOTTOM;
        $lines = [
            \sprintf(
                '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%1$d" height="%2$d" role="img"'
                    . ' font-family="system-ui, sans-serif" font-size="13">',
                self::WIDTH,
                $height,
            ),
            '<title>' . self::escaped($this->title) . '</title>',
            self::text(0, 16, $colours['text'], $this->title, 'font-weight="600"'),
        ];
        foreach (array_keys($this->values) as $number => $label) {
            array_push($lines, ...$this->bar($label, self::TOP + self::ROW * $number, $colours));
        }
        $lines[] = self::text(0, $height - 8, $colours['dim'], $this->note, 'font-size="11"');

        return implode("\n", [...$lines, '</svg>']) . "\n";
    }

    /**
     * @param array{text: string, dim: string, spindle: string, other: string} $colours
     * @return list<string>
     */
    private function bar(string $label, int $y, array $colours): array
    {
        $isSpindle = str_starts_with($label, 'Spindle');
        $share = $this->values[$label] / max(1e-9, ...array_values($this->values));
        $length = round((self::WIDTH - self::LABELS - self::VALUES) * $share, 1);
        $weight = $isSpindle ? 'font-weight="600"' : '';
        $value = self::rounded($this->values[$label]);

        return [
            self::text(self::LABELS - 8, $y + 13, $colours['text'], $label, trim("text-anchor=\"end\" {$weight}")),
            \sprintf(
                '<rect x="%d" y="%d" width="%s" height="%d" rx="2" fill="%s"/>',
                self::LABELS,
                $y,
                max(1.0, $length),
                self::BAR,
                $colours[$isSpindle ? 'spindle' : 'other'],
            ),
            self::text(self::LABELS + $length + 6, $y + 13, $colours['text'], $value, $weight),
        ];
    }

    private static function text(float $x, float $y, string $colour, string $text, string $attributes): string
    {
        return "<text x=\"{$x}\" y=\"{$y}\" fill=\"{$colour}\"" . rtrim(" {$attributes}") . '>'
            . self::escaped($text) . '</text>';
    }

    /** Returns three significant digits, which is more than a benchmark can repeat. */
    private static function rounded(float $value): string
    {
        return number_format(round($value, 2 - (int) floor(log10($value))));
    }

    private static function escaped(string $text): string
    {
        return htmlspecialchars($text, \ENT_QUOTES | \ENT_XML1, 'UTF-8');
    }
}
