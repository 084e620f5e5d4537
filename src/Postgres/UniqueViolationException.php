<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A value is there already that may be there once: SQLSTATE 23505. {@see $constraint} names the constraint, {@see $column} the columns. */
final class UniqueViolationException extends QueryException {}
