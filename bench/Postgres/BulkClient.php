<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

/** A way to move large amounts of data over one connection. A row is {@see Tables::row()}. */
interface BulkClient
{
    /**
     * Returns all rows at once, with the types int, string and float.
     *
     * @return list<array<array-key, mixed>>
     */
    public function rows(string $sql): array;

    /** Sends a bytea to the server and returns its answer. */
    public function echo(string $bytes): string;

    /**
     * Yields the rows of rows() in as little memory as possible.
     *
     * @return iterable<array<array-key, mixed>>
     */
    public function stream(string $sql): iterable;

    /** @param iterable<array{int, string, float}> $rows */
    public function copyArrays(string $table, iterable $rows): void;

    /** @param iterable<string> $lines in the text format of COPY, with line ends */
    public function copyStrings(string $table, iterable $lines): void;

    /** @return iterable<string> lines in the text format of COPY */
    public function copyOut(string $table): iterable;

    public function close(): void;
}
