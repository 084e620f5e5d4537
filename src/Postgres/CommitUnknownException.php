<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost or closed during a commit. All of the transaction is done, or none; check which. */
final class CommitUnknownException extends ConnectionLostException {}
