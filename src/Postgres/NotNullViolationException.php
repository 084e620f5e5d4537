<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A column that must have a value would be null (SQLSTATE 23502). {@see $column} names the column. */
final class NotNullViolationException extends QueryException {}
