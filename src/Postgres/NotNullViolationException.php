<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A value is missing: SQLSTATE 23502. {@see $column} names the column. */
final class NotNullViolationException extends QueryException {}
