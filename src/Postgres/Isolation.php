<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * Isolation level of a transaction. The level decides which changes of concurrent transactions the transaction sees.
 *
 * @see https://www.postgresql.org/docs/current/transaction-iso.html
 */
enum Isolation: string
{
    case ReadCommitted = 'READ COMMITTED';
    case RepeatableRead = 'REPEATABLE READ';
    case Serializable = 'SERIALIZABLE';
}
