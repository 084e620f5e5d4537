<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\ResponseInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Response;

/** What is answered when a handler throws: the same wherever it runs. The log is told of what the client is not. */
final class Failure
{
    /** Bytes of an exception's message in that of the log: it may hold what a client has sent. */
    private const LONGEST = 16_384;

    private function __construct() {}

    public static function answer(\Throwable $failure, Head $head, LoggerInterface $logger): ResponseInterface
    {
        $meant = $failure instanceof HttpException ? $failure : null;
        $cause = $meant === null ? $failure : ($meant->status >= 500 ? $meant->getPrevious() : null);
        if ($cause !== null) {
            $logger->error('The handler of {method} {target} failed: ' . self::message($cause), ['method' => $head->method, 'target' => $head->target, 'exception' => $failure]);
        }

        return $meant === null
            ? Response::text("Internal Server Error\n", 500)
            : Response::text(($meant->getMessage() !== '' ? $meant->getMessage() : Status::reason($meant->status)) . "\n", $meant->status, $meant->headers);
    }

    /** As part of a log message: in braces a logger would look for names from the context. */
    public static function message(\Throwable $failure): string
    {
        return strtr(substr($failure->getMessage(), 0, self::LONGEST), ['{' => '\x7b', '}' => '\x7d']);
    }
}
