<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The connection was lost, or closed, while a commit was under way: the transaction is either done as a whole or not at all, look which. */
final class CommitUnknownException extends ConnectionLostException {}
