<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

/** Splits bytes into records that end with a separator, which is optional at the end of the input. */
final class RecordSplitter
{
    /** Largest size of a record, in bytes. A command is usually limited to 2 MiB: see {@see CommandLimit}. */
    public const MAX_RECORD_BYTES = 4 << 20;

    private string $rest = '';

    /** @param non-empty-string $separator must be one byte for {@see pushText()} */
    public function __construct(private readonly string $separator) {}

    /** @return list<string> the records that are complete */
    public function push(string $bytes): array
    {
        $records = explode($this->separator, $this->rest . $bytes);
        $this->rest = array_pop($records);

        return $records;
    }

    public function pushText(string $bytes): string
    {
        $end = strrpos($bytes, $this->separator);
        if ($end === false) {
            $this->rest .= $bytes;

            return '';
        }
        $text = $this->rest . substr($bytes, 0, $end + 1);
        $this->rest = substr($bytes, $end + 1);

        return $text;
    }

    public function isTooLong(): bool
    {
        return \strlen($this->rest) > self::MAX_RECORD_BYTES;
    }

    /** @return list<string> the bytes after the last separator, if any */
    public function end(): array
    {
        $rest = $this->rest;
        $this->rest = '';

        return $rest === '' ? [] : [$rest];
    }
}
