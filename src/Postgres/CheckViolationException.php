<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row does not satisfy a check constraint (SQLSTATE 23514). {@see $constraint} is the constraint's name. */
final class CheckViolationException extends QueryException {}
