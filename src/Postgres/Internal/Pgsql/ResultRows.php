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

/** Rows that stay in libpq's memory, which PHP does not count, until they are read. */
final readonly class ResultRows implements Rows
{
    private const BATCH_ROWS = 256;

    /** Bytes after which a batch ends. */
    private const BATCH_BYTES = 0x4_0000;

    /** Rows that are measured to estimate the size of all. */
    private const SAMPLE_ROWS = 20;

    /** @var int<0, max> */
    public int $count;

    /** Upper bounds for a server's message in bytes, and for the speed of a result, which is copied several times. */
    private const MAX_MESSAGE_BYTES = 0x7FFF_FFFF;
    private const MAX_BYTES_PER_NANOSECOND = 20;

    /** @var list<int> columns whose values may be large; none in a small result, because measuring is slow */
    private array $large;

    /**
     * @param int $took nanoseconds until the result arrived
     * @param bool $isWhole whether these are all rows of a statement, so that their total size is limited
     */
    public function __construct(private Result $result, private SizeLimits $limits, int $took, private bool $isWhole)
    {
        $this->count = max(0, pg_num_rows($result));
        $large = [];
        $limit = $limits->row();
        if ($limit < self::MAX_MESSAGE_BYTES && $took * self::MAX_BYTES_PER_NANOSECOND > $limit) {
            for ($column = 0, $count = pg_num_fields($result); $column < $count; ++$column) {
                // Types of fixed size have a positive number here.
                if (pg_field_size($result, $column) < 0) {
                    $large[] = $column;
                }
            }
        }
        $this->large = $large;
    }

    public function first(Columns $columns, array $keys): array
    {
        $this->ensureSmall($this->size(0));

        return self::values($this->texts(0), $columns, $keys);
    }

    public function batches(Columns $columns, array $keys): iterable
    {
        for ($row = 0; $row < $this->count && $this->large === [];) {
            $batch = [];
            for ($end = min($this->count, $row + self::BATCH_ROWS); $row < $end; ++$row) {
                $batch[] = self::values($this->texts($row), $columns, $keys);
            }
            yield $batch;
        }
        yield from $this->large === [] ? [] : $this->limitedBatches($columns, $keys);
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
                $size = $this->size($row);
                if ($size > SizeLimits::MIN_BYTES && $batch !== []) {
                    break; // if this row is too large, the rows before it are returned first
                }
                $this->ensureSmall($size);
                $bytes += $size;
                $batch[] = self::values($this->texts($row), $columns, $keys);
            }
            $all += $bytes;
            yield $batch;
        }
    }

    /** Estimates the bytes of a row. */
    public function averageSize(): float
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

    /** Returns the bytes of a row's values of variable size, before PHP copies them. */
    private function size(int $row): int
    {
        $bytes = 0;
        foreach ($this->large as $column) {
            $bytes += (int) pg_field_prtlen($this->result, $row, $column);
        }

        return $bytes;
    }

    private function ensureSmall(int $bytes): void
    {
        if ($bytes > SizeLimits::MIN_BYTES && $bytes > ($limit = $this->limits->row())) {
            throw ResultTooLargeException::row($bytes, $limit);
        }
    }

    /** @return list<string|null> */
    private function texts(int $row): array
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
                // The cast also returns 0 for a text that is no number, such as an empty one.
                Types::INT => ((int) $text) !== 0 || $text === '0'
                    ? (int) $text
                    : throw ProtocolException::value('integer'),
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
