<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The key of a row exists already: SQLSTATE 23505. See {@see $constraint}, and {@see $column} for its columns. */
final class UniqueViolationException extends QueryException {}
