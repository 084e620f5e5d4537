<?php

declare(strict_types=1);

namespace Aircraft;

/**
 * A task for a worker that renders an SVG document.
 *
 * The work is CPU-bound: the border is a guilloche, and the seal is deliberately slow to compute.
 */
final readonly class Certificate
{
    private const POINTS = 20_000;
    private const ROUNDS = 300_000;

    public function __construct(private Aircraft $aircraft) {}

    public function __invoke(): string
    {
        $aircraft = $this->aircraft;
        $seal = hash_pbkdf2(
            'sha256',
            json_encode($aircraft, \JSON_THROW_ON_ERROR),
            'aircraft certificate',
            self::ROUNDS,
            32,
        );
        $text = static fn(string $text): string
            => htmlspecialchars($text, \ENT_XML1 | \ENT_QUOTES | \ENT_SUBSTITUTE | \ENT_DISALLOWED, 'UTF-8');
        $border = self::guilloche((int) hexdec(substr($seal, 0, 4)));
        $assembled = $aircraft->assemblyDate === null ? '' : "assembled on {$aircraft->assemblyDate->format('j F Y')}";

        return <<<SVG
            <?xml version="1.0" encoding="UTF-8"?>
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="-540 -350 1080 700"
                font-family="serif" text-anchor="middle">
            <path d="{$border}" fill="none" stroke="#7a8fa6" stroke-width="0.4"/>
            <text y="-140" font-size="44">Certificate of registration</text>
            <text y="-50" font-size="64">{$text($aircraft->number)}</text>
            <text y="10" font-size="30">{$text($aircraft->title)}</text>
            <text y="60" font-size="22">serial number {$text($aircraft->serialNumber)}</text>
            <text y="95" font-size="22">{$assembled}</text>
            <text y="180" font-size="14" font-family="monospace">{$seal}</text>
            </svg>

            SVG;
    }

    /** Draws one line that crosses itself many times, as on banknotes. */
    private static function guilloche(int $number): string
    {
        [$inner, $outer] = [7 + $number % 13, 31 + $number % 29];
        $path = 'M';
        for ($i = 0; $i <= self::POINTS; ++$i) {
            $angle = 2 * \M_PI * $i / self::POINTS;
            $radius = 300 + 28 * sin($outer * $angle) + 12 * cos($inner * 11 * $angle);
            $path .= \sprintf('%.1F %.1F ', 1.55 * $radius * cos($angle), $radius * sin($angle));
        }

        return $path;
    }
}
