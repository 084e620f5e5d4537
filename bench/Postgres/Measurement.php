<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** Measurements of the PostgreSQL client. */
enum Measurement: string
{
    case Select = 'select';
    case Cells = 'cells';
    case Far = 'far';
    case Unit = 'unit';
    case Update = 'update';
    case Rows = 'rows';
    case Parameter = 'parameter';
    case Stream = 'stream';
    case Copy = 'copy';
    case Sleep = 'sleep';
    case Gaps = 'gaps';
    case Cancel = 'cancel';
    case Acquire = 'acquire';

    /**
     * Returns the default number of operations: queries, units, updates, rows or waiting fibers; for others, of
     * repetitions.
     */
    public function count(): int
    {
        return match ($this) {
            self::Select => 100_000,
            self::Cells => 30_000,
            self::Far => 50,
            self::Unit => 2_000,
            self::Update => 20_000,
            self::Rows => 100,
            self::Parameter => 1,
            self::Stream, self::Copy => 1_000_000,
            self::Sleep => 10,
            self::Gaps, self::Cancel => 3,
            self::Acquire => 100,
        };
    }

    public function title(): string
    {
        return match ($this) {
            self::Select => 'A row by its primary key, connections × fibers',
            self::Cells => 'A row by its primary key, each number of fibers with each number of connections',
            self::Far => 'Statements at once, a round trip of 20 ms, two connections',
            self::Unit => 'Units of 20 different queries, one after the other, connections × fibers',
            self::Update => 'A row updated by its primary key, connections × fibers',
            self::Rows => '5,000 rows of int4, text and float8, from the query to the last value',
            self::Parameter => 'A bytea parameter to the server and back',
            self::Stream => 'Rows of int4, text and float8, streamed',
            self::Copy => 'Rows of int4, text and float8 by COPY',
            self::Sleep => 'pg_sleep(1) in several fibers, including the time to connect',
            self::Gaps => 'The longest gap between two ticks of the event loop',
            self::Cancel => 'From a cancellation or an end until pg_stat_activity shows it',
            self::Acquire => 'Waiting for the only connection of a pool, for half a second at most',
        };
    }

    /** @return non-empty-list<Variant> */
    public function variants(): array
    {
        return match ($this) {
            self::Update => [Variant::Single, Variant::Transaction],
            self::Copy => [Variant::Arrays, Variant::Strings, Variant::Out],
            self::Gaps => [
                Variant::Parameter,
                Variant::CancelledQuery,
                Variant::Reconnect,
                Variant::Lookup,
                Variant::Tls,
            ],
            self::Cancel => [Variant::CancelledQuery, Variant::ClosedPool, Variant::KilledPool, Variant::KilledClient],
            default => [Variant::Single],
        };
    }
}
