<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * How far transactions that run at the same time are kept apart.
 *
 * @see https://www.postgresql.org/docs/current/transaction-iso.html
 */
enum Isolation: string
{
    case ReadCommitted = 'READ COMMITTED';
    case RepeatableRead = 'REPEATABLE READ';
    case Serializable = 'SERIALIZABLE';
}
