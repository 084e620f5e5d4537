<?php

declare(strict_types=1);

namespace Spindle;

/** Something whose figures can be watched, such as a pool. */
interface Statistics
{
    /**
     * Figures of this moment, quickly told: by names in snake_case without a prefix. A name that ends in "_total" only grows.
     *
     * @return array<string, int|float>
     */
    public function statistics(): array;
}
