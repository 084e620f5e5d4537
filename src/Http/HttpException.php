<?php

declare(strict_types=1);

namespace Spindle\Http;

use Spindle\Http\Internal\Message\Fields;
use Spindle\SpindleException;

/** Thrown by a handler or a middleware to answer the request with a certain status. */
final class HttpException extends \RuntimeException implements SpindleException
{
    /**
     * @param int                   $status  400 to 599
     * @param string                $message shown to the client; '' for the reason phrase of the status
     * @param array<string, string> $headers response headers, by name
     *
     * @throws \ValueError when the status is not an error status
     * @throws \InvalidArgumentException when a header's name or value is invalid
     */
    public function __construct(
        public readonly int $status,
        string $message = '',
        #[\SensitiveParameter]
        public readonly array $headers = [],
        ?\Throwable $previous = null,
    ) {
        if ($status < 400 || $status > 599) {
            throw new \ValueError("The status of an HttpException must be from 400 to 599, not {$status}");
        }
        Fields::of($headers);
        parent::__construct($message, 0, $previous);
    }
}
