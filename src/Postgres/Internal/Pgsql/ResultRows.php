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

/** Rows that stay with libpq, in memory that PHP does not count, until they are asked for. */
final readonly class ResultRows implements Rows
{
    private const BATCH = 256;

    /** Bytes after which a batch ends. */
    private const BYTES = 0x4_0000;

    /** Rows whose size stands for that of all. */
    private const SAMPLE = 20;

    /** @var int<0, max> */
    public int $count;

    /** No message of a server is longer, and none comes faster: it is copied several times on its way. */
    private const LONGEST = 0x7FFF_FFFF;
    private const BYTES_PER_NANOSECOND = 20;

    /** @var list<int> indexes of the columns whose values may be large; none where the result can't be, for to ask for each takes as long as to fetch it */
    private array $large;

    /**
     * @param int  $took    nanoseconds until the result was here
     * @param bool $isWhole whether these are all rows of a statement, which may be taken as a whole
     */
    public function __construct(private Result $result, private SizeLimits $limits, int $took, private bool $isWhole)
    {
        $this->count = max(0, pg_num_rows($result));
        $large = [];
        $limit = $limits->row();
        if ($limit < self::LONGEST && $took * self::BYTES_PER_NANOSECOND > $limit) {
            for ($column = 0, $count = pg_num_fields($result); $column < $count; ++$column) {
                // Types of a fixed size have a number for it.
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
            for ($end = min($this->count, $row + self::BATCH); $row < $end; ++$row) {
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
        $most = $this->isWhole ? SizeLimits::result() : \PHP_INT_MAX;
        for ($row = 0; $row < $this->count;) {
            if ($all > $most) {
                throw ResultTooLargeException::result($most);
            }
            $batch = [];
            $bytes = 0;
            for ($end = min($this->count, $row + self::BATCH); $row < $end && $bytes < self::BYTES; ++$row) {
                $size = $this->size($row);
                if ($size > SizeLimits::FLOOR && $batch !== []) {
                    break; // should it be too large, that comes behind the rows before
                }
                $this->ensureSmall($size);
                $bytes += $size;
                $batch[] = self::values($this->texts($row), $columns, $keys);
            }
            $all += $bytes;
            yield $batch;
        }
    }

    /** Bytes of a row, about. */
    public function averageSize(): float
    {
        $sample = min(self::SAMPLE, $this->count);
        $bytes = 0;
        for ($row = 0; $row < $sample; ++$row) {
            for ($column = 0, $count = pg_num_fields($this->result); $column < $count; ++$column) {
                $bytes += (int) pg_field_prtlen($this->result, $row, $column);
            }
        }

        return 1 + $bytes / max(1, $sample);
    }

    /** Bytes of a row's values, those of a fixed size aside. Asked for before PHP copies them. */
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
        if ($bytes > SizeLimits::FLOOR && $bytes > ($limit = $this->limits->row())) {
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
                // Anything but a number, such as an empty text, would be 0.
                Types::INT => ((int) $text) !== 0 || $text === '0' ? (int) $text : throw ProtocolException::value('integer'),
                default => $columns->types->decode($columns->oids[$index], $text),
            };
        }

        return $values;
    }
}
