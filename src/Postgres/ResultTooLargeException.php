<?php

declare(strict_types=1);

namespace Spindle\Postgres;

/** A row or a result exceeds its limit, and was skipped. The statement has completed, the connection works. */
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
            "A row of {$bytes} bytes was not read, because more than {$limit} bytes may not be. Raise maxValueBytes or memory_limit, or select parts of the value by substr()",
            $limit,
        );
    }

    /** @internal */
    public static function result(int $limit): self
    {
        return new self(
            "The rows of a result take more than {$limit} bytes, which is half of memory_limit. Take stream(), or raise memory_limit",
            $limit,
        );
    }

    /** @internal */
    public static function stream(int $limit): self
    {
        return new self(
            "Another statement waits behind the rows of a stream, and they take more than {$limit} bytes, which is half of memory_limit. Send the other one on another connection",
            $limit,
        );
    }
}
