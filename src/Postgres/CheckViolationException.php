<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row does not satisfy a table's check: SQLSTATE 23514. */
final class CheckViolationException extends QueryException {}
