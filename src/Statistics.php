<?php

declare(strict_types=1);

namespace Spindle;

/** An object with figures for monitoring, such as a pool. */
interface Statistics
{
    /**
     * Returns current figures without waiting, by names in snake_case. A figure whose name ends in "_total" only grows.
     *
     * @return array<string, int|float>
     */
    public function statistics(): array;
}
