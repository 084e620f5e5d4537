<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal;

use Amp\Cancellation;

/** Lends sessions for exclusive use. */
interface SessionLender
{
    /** Suspends until a session is available, and lends it to the caller. */
    public function acquire(?Cancellation $cancellation): Session;

    /** Declares that another fiber will release the session, so that the borrower's fiber may wait for a session. */
    public function detachFromFiber(Session $session): void;

    /** Ends the exclusive use of a session. */
    public function release(Session $session): void;

    /** Logs a warning, for example about a COMMIT that the server has not answered for long. */
    public function warn(string $warning): void;
}
