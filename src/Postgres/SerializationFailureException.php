<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Concurrent transactions could not have run one after the other: SQLSTATE 40001. The transaction may be retried. */
final class SerializationFailureException extends QueryException {}
