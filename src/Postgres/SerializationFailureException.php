<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** The transaction conflicts with a concurrent transaction (SQLSTATE 40001). The transaction can be retried. */
final class SerializationFailureException extends QueryException {}
