<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row is missing that another refers to: SQLSTATE 23503. */
final class ForeignKeyViolationException extends QueryException {}
