<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** Lends sessions for exclusive use. */
interface SessionLender
{
    /** Suspends until a session is available, and lends it to the caller. Throws if the lender was closed. */
    public function acquire(?Cancellation $cancellation): Session;

    /**
     * Releases the session after a failed attempt of a transaction, even if this method throws. After `$pause` seconds,
     * lends a session for the next attempt. A lender that was closed since the first attempt lends a session, too,
     * because close() waits for accepted transactions.
     */
    public function acquireAgain(Session $session, float $pause, ?Cancellation $cancellation): Session;

    /** Lets any fiber release the session. After that, acquire() in the borrower's fiber does not throw, but waits. */
    public function detachFromFiber(Session $session): void;

    public function release(Session $session): void;

    /** Logs a warning, for example that the server has not answered a COMMIT for a minute. */
    public function warn(string $warning): void;
}
