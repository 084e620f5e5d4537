<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row conflicts with another: SQLSTATE 23P01. */
final class ExclusionViolationException extends QueryException {}
