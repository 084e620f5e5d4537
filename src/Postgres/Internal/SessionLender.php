<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

interface SessionLender
{
    /** Suspends until a session is available, and lends it to the caller. Throws if the lender refuses new calls. */
    public function acquire(?Cancellation $cancellation): Session;

    /**
     * Releases the session after a failed attempt of a transaction, even if this method throws. After `$pause` seconds,
     * lends a session for the next attempt. Even a closed lender lends one, because close() waits for transactions.
     */
    public function acquireAgain(Session $session, float $pause, ?Cancellation $cancellation): Session;

    /** Lets any fiber release the session. Then acquire() in the borrower's fiber waits, and reports no deadlock. */
    public function detachFromFiber(Session $session): void;

    public function release(Session $session): void;

    /** Logs a warning, for example that the server has not answered a COMMIT for a minute. */
    public function warn(string $warning): void;
}
