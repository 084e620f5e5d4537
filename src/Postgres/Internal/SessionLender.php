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
     * Releases the session of a failed attempt. Lends one for the next attempt after `$pause` seconds, also if the
     * lender was closed since the call began. When this method throws, the session is released as well.
     */
    public function acquireAgain(Session $session, float $pause, ?Cancellation $cancellation): Session;

    /** Declares that another fiber will release the session, so that the borrower's fiber may wait for the lender. */
    public function detachFromFiber(Session $session): void;

    public function release(Session $session): void;

    /** Logs a warning, for example about a COMMIT that the server has not answered for long. */
    public function warn(string $warning): void;
}
