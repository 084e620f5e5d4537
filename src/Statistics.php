<?php

declare(strict_types=1);

namespace Spindle;

/** Implemented by objects that have figures for monitoring, such as pools. */
interface Statistics
{
    /**
     * Returns the current figures by name, without suspending the fiber. Names are in snake_case. A figure whose name
     * ends in "_total" only grows.
     *
     * @return array<string, int|float>
     */
    public function statistics(): array;
}
