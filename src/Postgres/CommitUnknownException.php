<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server did not answer a COMMIT. Either the whole transaction was committed, or nothing. The caller must find out.
 * The connection was lost or closed, or the server did not answer within 5 seconds after a cancellation.
 */
final class CommitUnknownException extends ConnectionLostException {}
