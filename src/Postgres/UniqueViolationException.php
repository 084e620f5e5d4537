<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Another row has the same unique key (SQLSTATE 23505). {@see $column} lists the columns of that key. */
final class UniqueViolationException extends QueryException {}
