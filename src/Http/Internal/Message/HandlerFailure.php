<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Message;

use Psr\Http\Message\ResponseInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Spindle\Http\HttpException;
use Spindle\Http\Response;
use Spindle\Internal\ThrownText;

/** Creates the response to a handler's exception. Exceptions other than HttpException are logged, but not shown. */
final class HandlerFailure
{
    /** Maximum bytes of an exception's message in the log, because a message may contain long data from clients. */
    private const MAX_MESSAGE_BYTES = 16_384;

    /**
     * @param array<string, string> $request context of the log entry: {@see LogFields}
     * @param bool $responseStarted true if a response has started, so that the returned response can't be sent. In this
     *     case, each exception is logged. An {@see HttpException} with a status below 500 is logged only as a warning,
     *     because clients can cause such an exception
     */
    public static function answer(
        \Throwable $failure,
        array $request,
        LoggerInterface $logger,
        bool $responseStarted = false,
    ): ResponseInterface {
        $httpException = $failure instanceof HttpException ? $failure : null;
        $cause = match (true) {
            $httpException === null => $failure,
            $httpException->status >= 500 => $httpException->getPrevious(),
            default => null,
        };
        $cause ??= $responseStarted ? $failure : null;
        if ($cause !== null) {
            $logger->log(
                $httpException !== null && $httpException->status < 500 ? LogLevel::WARNING : LogLevel::ERROR,
                'The handler of {method} {target} failed: ' . self::message($cause),
                $request + ['exception' => $failure],
            );
        }

        if ($httpException === null) {
            return Response::text("Internal Server Error\n", 500);
        }
        $message = $httpException->getMessage();
        $text = $message !== '' ? $message : Status::reason($httpException->status);

        return Response::text("{$text}\n", $httpException->status, $httpException->headers);
    }

    public static function logUncaught(\Throwable $failure, LoggerInterface $logger): void
    {
        $logger->error(
            'Uncaught {class}: ' . self::message($failure),
            ['class' => $failure::class, 'exception' => $failure],
        );
    }

    /** Logs an exception of a response body's close(). The exception must not replace the response. */
    public static function logUnclosed(\Throwable $failure, ?LoggerInterface $logger): void
    {
        $logger?->warning('A response body could not be closed: ' . self::message($failure), ['exception' => $failure]);
    }

    /** Returns an exception's text for a log message. Braces are escaped, because loggers replace names in braces. */
    public static function message(\Throwable $failure): string
    {
        $message = substr(ThrownText::message($failure), 0, self::MAX_MESSAGE_BYTES);

        return strtr($message, ['{' => '\x7b', '}' => '\x7d']);
    }
}
