<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** Lends a session that nobody else uses meanwhile. */
interface Lender
{
    public function take(?Cancellation $cancellation): Session;

    /** Somebody else than who took it will give it back. */
    public function handOver(Session $session): void;

    public function give(Session $session): void;
}
