<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The outcome of a COMMIT is unknown: the connection was lost or closed before the answer, or the server did not answer
 * within 5 seconds after a cancellation. Either all changes were committed, or none. To find out, query the data.
 */
final class CommitUnknownException extends ConnectionLostException {}
