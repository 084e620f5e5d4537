<?php

declare(strict_types=1);

namespace Spindle\Postgres;

use Spindle\Internal\FreeMemory;

/**
 * A row, or all rows of a result together, exceed a size limit or the memory that the process has left. The statement
 * has completed, except for stream() and copyTo().
 */
final class ResultTooLargeException extends \RuntimeException implements PostgresException
{
    /** @param int $limit limit in bytes */
    private function __construct(string $message, public readonly int $limit)
    {
        parent::__construct($message);
    }

    /** @internal */
    public static function row(int $bytes, int $limit): self
    {
        return new self(
            "A row of {$bytes} bytes exceeds the limit of {$limit} bytes and was not read. "
                . 'Raise maxRowBytes or memory_limit, or select parts of the value with substr()',
            $limit,
        );
    }

    /** @internal */
    public static function result(int $limit): self
    {
        return new self(
            "The rows of a result exceed {$limit} bytes, which is half of memory_limit. "
                . 'Use stream(), or raise memory_limit',
            $limit,
        );
    }

    /** @internal */
    public static function memory(string $what): self
    {
        return new self(
            "The process has too little memory left for {$what}: " . FreeMemory::usage()
                . '. Use stream(), run fewer statements at once, or raise memory_limit',
            ini_parse_quantity(\ini_get('memory_limit')),
        );
    }

    /** @internal */
    public static function stream(int $limit): self
    {
        return new self(
            "The rows of a stream exceed {$limit} bytes, which is half of memory_limit. The client read them ahead, "
                . 'because another statement follows on this connection. Send that statement on another connection',
            $limit,
        );
    }
}
