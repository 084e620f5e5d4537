<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Transactions waited for each other, and the server ended this one: SQLSTATE 40P01. It may be retried. */
final class DeadlockException extends QueryException {}
