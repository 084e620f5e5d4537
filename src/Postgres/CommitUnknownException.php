<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The connection was lost or closed during a commit. The transaction is either done as a whole or not at all; check
 * which.
 */
final class CommitUnknownException extends ConnectionLostException {}
