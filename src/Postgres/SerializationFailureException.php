<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** Transactions that ran at the same time could not have run one after the other: SQLSTATE 40001. It may be tried again. */
final class SerializationFailureException extends QueryException {}
