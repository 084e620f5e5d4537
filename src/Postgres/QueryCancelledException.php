<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server stopped the statement because of statement_timeout or a request of another client (SQLSTATE 57014).
 *
 * If a Cancellation stops the statement, the call throws a CancelledException instead.
 */
final class QueryCancelledException extends QueryException {}
