<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * The server stopped the statement because of statement_timeout or at the request of another client (SQLSTATE 57014).
 *
 * If the Cancellation of the call stops the statement, the call throws a CancelledException instead.
 */
final class QueryCancelledException extends QueryException {}
