<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row conflicts with another row, according to an exclusion constraint (SQLSTATE 23P01). */
final class ExclusionViolationException extends QueryException {}
