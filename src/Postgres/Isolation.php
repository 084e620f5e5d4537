<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/**
 * How much concurrent transactions see of each other.
 *
 * @see https://www.postgresql.org/docs/current/transaction-iso.html
 */
enum Isolation: string
{
    case ReadCommitted = 'READ COMMITTED';
    case RepeatableRead = 'REPEATABLE READ';
    case Serializable = 'SERIALIZABLE';
}
