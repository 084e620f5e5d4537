<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

/** Splits bytes that come in pieces into records that end with a separator; the last one's may be missing. */
final class RecordSplitter
{
    /** A record longer than this, in bytes, is no command that the system could run. */
    public const LONGEST = 4 << 20;

    private string $rest = '';

    /** @param non-empty-string $separator one byte */
    public function __construct(private readonly string $separator) {}

    /** @return list<string> the records that are complete */
    public function push(string $bytes): array
    {
        $records = explode($this->separator, $this->rest . $bytes);
        $this->rest = array_pop($records);

        return $records;
    }

    /** Whether the record that is under way is longer than any may be. */
    public function isTooLong(): bool
    {
        return \strlen($this->rest) > self::LONGEST;
    }

    /** @return list<string> what came after the last separator, unless that is nothing */
    public function end(): array
    {
        $rest = $this->rest;
        $this->rest = '';

        return $rest === '' ? [] : [$rest];
    }
}
