<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * Transactions waited for each other, and the server ended this one: SQLSTATE 40P01. The transaction may be retried.
 */
final class DeadlockException extends QueryException {}
