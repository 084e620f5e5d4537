<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** The servers that an admin address reports on. Each method may suspend the calling fiber. */
interface ServerOverview
{
    public function statistics(): CombinedStatistics;

    public function readiness(): Readiness;
}
