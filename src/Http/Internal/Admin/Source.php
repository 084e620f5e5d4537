<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

use Spindle\Http\HttpServerStatistics;

/** Servers that answer for themselves, all of them each time. Each method may suspend. */
interface Source
{
    /** @return list<HttpServerStatistics> of this moment, one for each process that serves or drains */
    public function statistics(): array;

    /** @return array<string, string|null> by a check's name: why it failed, in one process at least, or null */
    public function checks(): array;
}
