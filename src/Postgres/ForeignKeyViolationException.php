<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A referenced row does not exist, or the row is still referenced (SQLSTATE 23503). */
final class ForeignKeyViolationException extends QueryException {}
