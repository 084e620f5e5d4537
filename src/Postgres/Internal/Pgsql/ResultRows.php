<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Pgsql;

use PgSql\Result;
use Spindle\Postgres\Internal\Columns;
use Spindle\Postgres\Internal\Rows;
use Spindle\Postgres\Internal\SizeLimits;
use Spindle\Postgres\Internal\Types\Types;
use Spindle\Postgres\ProtocolException;
use Spindle\Postgres\ResultTooLargeException;

/** Rows of a result of ext-pgsql, which are in libpq's memory until the result is freed. memory_limit ignores them. */
final readonly class ResultRows implements Rows
{
    /** Maximum number of rows in a batch. */
    private const BATCH_ROWS = 256;

    /** A batch ends once the measured values of its rows have this many bytes: {@see limitedBatches()}. */
    private const BATCH_BYTES = 0x4_0000;

    /** Number of rows that are measured to estimate the average size. */
    private const SAMPLE_ROWS = 20;

    /** @var int<0, max> */
    public int $count;

    /** Maximum bytes of a message from the server. */
    private const MAX_MESSAGE_BYTES = 0x7FFF_FFFF;

    /** No result arrives faster, because its bytes are copied several times. So the time for it limits its size. */
    private const MAX_BYTES_PER_NANOSECOND = 20;

    /** @var list<int> columns to measure; none if no row can be too large after so short a time: measuring is slow */
    private array $measuredColumns;

    /**
     * @param int $nanoseconds nanoseconds until the result arrived
     * @param bool $isWhole whether the result has all rows of a statement, so that their total size is limited
     */
    public function __construct(
        private Result $result,
        private SizeLimits $limits,
        int $nanoseconds,
        private bool $isWhole,
    ) {
        $this->count = max(0, pg_num_rows($result));
        $measuredColumns = [];
        $limit = $limits->row();
        if ($limit < self::MAX_MESSAGE_BYTES && $nanoseconds * self::MAX_BYTES_PER_NANOSECOND > $limit) {
            for ($column = 0, $count = pg_num_fields($result); $column < $count; ++$column) {
                // The number is negative for types of variable size.
                if (pg_field_size($result, $column) < 0) {
                    $measuredColumns[] = $column;
                }
            }
        }
        $this->measuredColumns = $measuredColumns;
    }

    public function first(Columns $columns, array $keys): array
    {
        $this->ensureWithinLimit($this->measuredBytes(0));

        return self::values($this->rowTexts(0), $columns, $keys);
    }

    public function batches(Columns $columns, array $keys): iterable
    {
        for ($row = 0; $row < $this->count && $this->measuredColumns === [];) {
            $batch = [];
            for ($end = min($this->count, $row + self::BATCH_ROWS); $row < $end; ++$row) {
                $batch[] = self::values($this->rowTexts($row), $columns, $keys);
            }
            yield $batch;
        }
        yield from $this->measuredColumns === [] ? [] : $this->limitedBatches($columns, $keys);
    }

    /**
     * @template K of array-key
     *
     * @param list<K> $keys
     *
     * @return iterable<list<array<K, mixed>>>
     *
     * @throws ResultTooLargeException
     */
    private function limitedBatches(Columns $columns, array $keys): iterable
    {
        $all = 0;
        $limit = $this->isWhole ? SizeLimits::result() : \PHP_INT_MAX;
        for ($row = 0; $row < $this->count;) {
            if ($all > $limit) {
                throw ResultTooLargeException::result($limit);
            }
            $batch = [];
            $bytes = 0;
            for ($end = min($this->count, $row + self::BATCH_ROWS); $row < $end && $bytes < self::BATCH_BYTES; ++$row) {
                $size = $this->measuredBytes($row);
                if ($size > SizeLimits::MIN_BYTES && $batch !== []) {
                    break; // if this row is too large, the exception follows after the rows before it
                }
                $this->ensureWithinLimit($size);
                $bytes += $size;
                $batch[] = self::values($this->rowTexts($row), $columns, $keys);
            }
            $all += $bytes;
            yield $batch;
        }
    }

    /** Estimates the average bytes of a row; at least 1. */
    public function averageRowBytes(): float
    {
        $sample = min(self::SAMPLE_ROWS, $this->count);
        $bytes = 0;
        for ($row = 0; $row < $sample; ++$row) {
            for ($column = 0, $count = pg_num_fields($this->result); $column < $count; ++$column) {
                $bytes += (int) pg_field_prtlen($this->result, $row, $column);
            }
        }

        return 1 + $bytes / max(1, $sample);
    }

    /** Returns the bytes of a row's values in the measured columns, before PHP copies the values. */
    private function measuredBytes(int $row): int
    {
        $bytes = 0;
        foreach ($this->measuredColumns as $column) {
            $bytes += (int) pg_field_prtlen($this->result, $row, $column);
        }

        return $bytes;
    }

    /** @throws ResultTooLargeException */
    private function ensureWithinLimit(int $bytes): void
    {
        if ($bytes > SizeLimits::MIN_BYTES && $bytes > ($limit = $this->limits->row())) {
            throw ResultTooLargeException::row($bytes, $limit);
        }
    }

    /** @return list<string|null> */
    private function rowTexts(int $row): array
    {
        /** @var list<string|null> $texts */
        $texts = pg_fetch_row($this->result, $row);

        return $texts;
    }

    /**
     * @template K of array-key
     *
     * @param list<string|null> $texts
     * @param list<K>           $keys
     *
     * @return array<K, mixed>
     */
    private static function values(array $texts, Columns $columns, array $keys): array
    {
        $values = [];
        foreach ($keys as $index => $key) {
            $text = $texts[$index];
            $values[$key] = $text === null ? null : match ($columns->kinds[$index]) {
                Types::TEXT => $text,
                // The cast also returns 0 for text that is not a number, such as ''.
                Types::INT => ((int) $text) !== 0 || $text === '0'
                    ? (int) $text
                    : throw ProtocolException::value('integer'),
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
