<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server did not answer a COMMIT, because the connection was lost or closed, or within 5 seconds after a
 * cancellation. Either the whole transaction was committed, or nothing. The caller must find out which.
 */
final class CommitUnknownException extends ConnectionLostException {}
