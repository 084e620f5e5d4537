<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A time limit or another client stopped a statement: SQLSTATE 57014. A Cancellation throws CancelledException. */
final class QueryCancelledException extends QueryException {}
