<?php

declare(strict_types=1);

namespace Spindle\Site\Chart;

/** Colours of a chart for a light or a dark page. */
enum Theme: string
{
    case Light = 'light';
    case Dark = 'dark';

    /** @return array{text: string, dim: string, spindle: string, other: string} */
    public function colours(): array
    {
        return match ($this) {
            self::Light => ['text' => '#1f2328', 'dim' => '#59636e', 'spindle' => '#0969da', 'other' => '#afb8c1'],
            self::Dark => ['text' => '#e6edf3', 'dim' => '#9198a1', 'spindle' => '#4493f8', 'other' => '#4b535d'],
        };
    }
}
