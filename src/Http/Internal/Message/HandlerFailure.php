<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\ResponseInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Response;

/** Creates the response to a handler's exception. Unexpected exceptions are logged, without details in the response. */
final class HandlerFailure
{
    /** Maximum bytes of an exception's message in the log, because a message may contain data from clients. */
    private const MAX_MESSAGE_BYTES = 16_384;

    private function __construct() {}

    public static function answer(\Throwable $failure, Head $head, LoggerInterface $logger): ResponseInterface
    {
        $meant = $failure instanceof HttpException ? $failure : null;
        $cause = $meant === null ? $failure : ($meant->status >= 500 ? $meant->getPrevious() : null);
        if ($cause !== null) {
            $logger->error(
                'The handler of {method} {target} failed: ' . self::message($cause),
                ['method' => $head->method, 'target' => $head->target, 'exception' => $failure],
            );
        }

        return $meant === null
            ? Response::text("Internal Server Error\n", 500)
            : Response::text(
                ($meant->getMessage() !== '' ? $meant->getMessage() : Status::reason($meant->status)) . "\n",
                $meant->status,
                $meant->headers,
            );
    }

    /** Formats an exception for a log message. Loggers would replace names in braces, so braces are replaced. */
    public static function message(\Throwable $failure): string
    {
        return strtr(substr($failure->getMessage(), 0, self::MAX_MESSAGE_BYTES), ['{' => '\x7b', '}' => '\x7d']);
    }
}
