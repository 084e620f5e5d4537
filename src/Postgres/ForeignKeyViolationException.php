<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row refers to a row that does not exist, or a deleted or changed row is still referenced (SQLSTATE 23503). */
final class ForeignKeyViolationException extends QueryException {}
