<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Transactions waited for each other, so the server aborted this one (SQLSTATE 40P01). It can be retried. */
final class DeadlockException extends QueryException {}
