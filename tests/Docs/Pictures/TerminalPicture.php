<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs\Pictures;

use Spindle\Site\Chart\Theme;

/** The visible lines of a terminal as SVG. */
final readonly class TerminalPicture
{
    private const COLUMN = 8.4;
    private const ROW = 19;
    private const MARGIN = 14;

    /** @param list<list<array{string, string}>> $lines characters and their styles: '', '2', '7', '31' or '32' (SGR) */
    public function __construct(private string $title, private array $lines, private int $columns) {}

    public function svg(Theme $theme): string
    {
        $width = (int) ceil(2 * self::MARGIN + self::COLUMN * $this->columns);
        $height = 2 * self::MARGIN + self::ROW * \count($this->lines);
        $colours = self::colours($theme);
        $parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {$width} {$height}\" width=\"{$width}\""
                . " height=\"{$height}\" role=\"img\" font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\""
                . ' font-size="14">',
            '<title>' . self::escaped($this->title) . '</title>',
            "<rect width=\"{$width}\" height=\"{$height}\" rx=\"8\" fill=\"{$colours['ground']}\"/>",
        ];
        foreach ($this->lines as $row => $line) {
            $column = 0;
            foreach (self::runs($line) as [$text, $style, $length]) {
                $parts[] = self::run($text, $style, $column, $row, $length, $colours);
                $column += $length;
            }
        }

        return implode("\n", [...array_diff($parts, ['']), '</svg>']) . "\n";
    }

    /** @param array{ground: string, 0: string, 2: string, 31: string, 32: string} $colours */
    private static function run(string $text, string $style, int $column, int $row, int $length, array $colours): string
    {
        $x = self::MARGIN + self::COLUMN * $column;
        $y = self::MARGIN + self::ROW * $row;
        $width = self::COLUMN * $length;
        $colour = $style === '7' ? $colours['ground'] : $colours[(int) $style] ?? $colours[0];
        $behind = $style === '7'
            ? "<rect x=\"{$x}\" y=\"{$y}\" width=\"{$width}\" height=\"" . self::ROW . "\" fill=\"{$colours[0]}\"/>"
            : '';
        // The length keeps columns in line whatever font the reader has.
        $drawn = trim($text) === '' ? '' : "<text x=\"{$x}\" y=\"" . ($y + 14) . "\" fill=\"{$colour}\""
            . " textLength=\"{$width}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">"
            . self::escaped($text) . '</text>';

        return $behind . $drawn;
    }

    /**
     * @param list<array{string, string}> $line
     *
     * @return list<array{string, string, int}> texts of one style each, with the style and the number of columns
     */
    private static function runs(array $line): array
    {
        $runs = [];
        foreach ($line as [$character, $style]) {
            $last = array_key_last($runs);
            if ($last !== null && $runs[$last][1] === $style) {
                $runs[$last][0] .= $character;
                ++$runs[$last][2];
            } else {
                $runs[] = [$character, $style, 1];
            }
        }

        return $runs;
    }

    /** @return array{ground: string, 0: string, 2: string, 31: string, 32: string} colours by style */
    private static function colours(Theme $theme): array
    {
        ['text' => $text, 'dim' => $dim] = $theme->colours();

        return [0 => $text, 2 => $dim] + match ($theme) {
            Theme::Light => ['ground' => '#f6f8fa', 31 => '#cf222e', 32 => '#1a7f37'],
            Theme::Dark => ['ground' => '#151b23', 31 => '#f85149', 32 => '#3fb950'],
        };
    }

    private static function escaped(string $text): string
    {
        return htmlspecialchars($text, \ENT_QUOTES | \ENT_XML1, 'UTF-8');
    }
}
