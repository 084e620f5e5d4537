<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The outcome of a COMMIT is unknown: the connection was lost or closed before the answer, or the server did not answer
 * within 5 seconds after the call was cancelled. Either all changes or none were committed. Query the data to find out.
 */
final class CommitUnknownException extends ConnectionLostException {}
