<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** Lends a session for exclusive use. */
interface SessionLender
{
    public function take(?Cancellation $cancellation): Session;

    /** Declares that another fiber than the borrower will give the session back. */
    public function handOver(Session $session): void;

    public function give(Session $session): void;

    /** Reports something that needs attention, such as a COMMIT without an answer. */
    public function warn(string $warning): void;
}
