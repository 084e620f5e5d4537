<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Spindle\SpindleException;

/** Thrown when a message is refused. The start of the next message is unknown, so the connection must be closed. */
final class BadMessageException extends \RuntimeException implements SpindleException
{
    /** @param int $status HTTP status with which a server refuses the message */
    private function __construct(public readonly int $status, string $message)
    {
        parent::__construct($message);
    }

    public static function malformed(string $message): self
    {
        return new self(400, $message);
    }

    public static function targetTooLong(int $limit): self
    {
        return new self(414, "The request target is longer than {$limit} bytes");
    }

    public static function headTooLarge(string $message): self
    {
        return new self(431, $message);
    }

    public static function expectation(): self
    {
        return new self(417, 'The only supported expectation is "100-continue"');
    }

    public static function version(): self
    {
        return new self(505, 'This server supports only HTTP/1.1 and HTTP/1.0');
    }

    public static function method(): self
    {
        return new self(501, 'This server does not support the method CONNECT');
    }

    public static function coding(): self
    {
        return new self(501, 'The only supported Transfer-Encoding is "chunked"');
    }
}
