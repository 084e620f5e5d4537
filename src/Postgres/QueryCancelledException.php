<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The server stopped a statement: its time was over, or somebody else cancelled it. SQLSTATE 57014. A cancellation of one's own is Amp's CancelledException. */
final class QueryCancelledException extends QueryException {}
