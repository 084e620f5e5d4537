<?php

declare(strict_types=1);

namespace Spindle;

/** Implemented by objects that have figures for monitoring, such as pools. */
interface Statistics
{
    /**
     * Returns the current figures by name, without suspending the fiber. Names are in snake_case. A figure whose name
     * ends in "_total" only grows. Figures such as "NAME_le_0.5_total", with ascending bounds up to
     * "NAME_le_inf_total", are the cumulative buckets of a histogram, and "NAME_total" is the sum of its values.
     *
     * @return array<string, int|float>
     */
    public function statistics(): array;
}
