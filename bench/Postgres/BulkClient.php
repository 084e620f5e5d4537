<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A way of moving much data over one connection. A row is {@see Tables::row()}. */
interface BulkClient
{
    /**
     * All rows at once, each value as what it is: int, string, float.
     *
     * @return list<array<array-key, mixed>>
     */
    public function rows(string $sql): array;

    /** A bytea there and back. */
    public function echo(string $bytes): string;

    /**
     * The same as rows(), in as little memory as it can.
     *
     * @return iterable<array<array-key, mixed>>
     */
    public function stream(string $sql): iterable;

    /** @param iterable<array{int, string, float}> $rows */
    public function copyArrays(string $table, iterable $rows): void;

    /** @param iterable<string> $lines in the text format of COPY, the line's end included */
    public function copyStrings(string $table, iterable $lines): void;

    /** @return iterable<string> lines in the text format of COPY */
    public function copyOut(string $table): iterable;

    public function close(): void;
}
