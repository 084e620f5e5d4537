<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row with the same unique key exists (SQLSTATE 23505). {@see $column} names the columns of {@see $constraint}. */
final class UniqueViolationException extends QueryException {}
