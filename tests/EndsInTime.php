<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/** Fails a test that exceeds its deadline, so that a hang is reported. Needs ext-pcntl. */
trait EndsInTime
{
    #[Before]
    protected function startTheClock(): void
    {
        Alarm::start($this->deadline());
    }

    /** Runs after the hooks that end what the test has started, because they may hang as well. */
    #[After(-5)]
    protected function stopTheClock(): void
    {
        Alarm::stop();
    }

    /** Seconds that one test may take. */
    protected function deadline(): int
    {
        return 120;
    }
}
