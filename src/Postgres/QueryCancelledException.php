<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * A time limit of the server or another client stopped the statement (SQLSTATE 57014).
 *
 * A statement that a Cancellation stops throws a CancelledException instead.
 */
final class QueryCancelledException extends QueryException {}
