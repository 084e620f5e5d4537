<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\AccessLogEntry;
use Spindle\Http\Internal\Message\RequestExchange;
use Spindle\Http\Internal\Middleware\ClientDisconnect;
use Spindle\Internal\LineFile;
use Spindle\Internal\RepeatedWarnings;
use Spindle\Internal\Warnings;

/**
 * Logs each response of a handler in Apache's combined format. Quotes, backslashes and all bytes except printable ASCII
 * are written as \xhh. An exception is logged with the status of its response, unless its cause is the cancellation of
 * the request ({@see \Spindle\Http\ClientDisconnectedException}). A logger also gets the duration of the handler,
 * without the time in which the body is sent. If the body is empty or its size is unknown, the line has "-" as size.
 *
 * If the server answers without calling a handler, the response is not logged. This happens if a request's head is
 * malformed, too large or late, or if too many requests are open. The server's statistics count these responses
 * by status. If a handler returns after its deadline, its response is logged, although the client got 503. If a handler
 * throws because of its deadline, nothing is logged. The server's own log has a message about each missed deadline. A
 * response is logged before its body is sent, so an exception that cuts off the body does not change the line.
 *
 * If a line can't be written, the request still succeeds, and {@see lostLines()} counts the line. The server's logger
 * gets a warning about the first lost line. After a minute without lost lines, the next lost line causes another
 * warning. If the server has no logger, the warnings go to PHP's error log.
 *
 * Client address and request id come from {@see TrustedProxies} and {@see RequestId} if these run before this
 * middleware. Otherwise, the address is that of the connection, and the id is empty.
 */
final class AccessLog implements MiddlewareInterface
{
    private int $lostLines = 0;

    private readonly RepeatedWarnings $warnings;

    private function __construct(private readonly LoggerInterface|LineFile|null $log)
    {
        $this->warnings = new RepeatedWarnings();
    }

    /**
     * Logs at info level. Context: method, target, status, bytes, duration (s), client_ip, request_id, user_agent,
     * referer.
     */
    public static function toLogger(LoggerInterface $logger): self
    {
        return new self($logger);
    }

    /**
     * Logs as {@see toLogger()} to the logger of the server, or to PHP's error log if there is none. If the application
     * has no logger, `spindle serve` writes the lines to its own log on standard error, in the format of that log.
     */
    public static function toServerLogger(): self
    {
        return new self(null);
    }

    /**
     * Appends lines to a file or named pipe. To rotate a file, copy and truncate it, or move it and reload the server.
     *
     * @throws AccessLogException when the file can't be opened
     */
    public static function toFile(string $path): self
    {
        error_clear_last();
        // "n": fopen() does not wait for the reader of a pipe. "e": commands do not inherit the descriptor.
        $stream = Warnings::suppressed(static fn(): mixed => fopen($path, 'ane'));

        return $stream !== false
            ? new self(new LineFile($stream))
            : throw AccessLogException::cantOpen($path, error_get_last()['message'] ?? 'unknown error');
    }

    /** @param resource $stream such as STDOUT; becomes non-blocking unless it is a terminal; is never closed */
    public static function toStream(mixed $stream): self
    {
        stream_isatty($stream) || stream_set_blocking($stream, false);

        return new self(new LineFile($stream));
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $startedAt = hrtime(true);
        try {
            $response = $handler->handle($request);
        } catch (\Throwable $failure) {
            if (!ClientDisconnect::caused($failure)) {
                $this->log($request, $failure instanceof HttpException ? $failure->status : 500, null, $startedAt);
            }
            throw $failure;
        }
        $this->log($request, $response->getStatusCode(), $response, $startedAt);

        return $response;
    }

    public function lostLines(): int
    {
        return $this->lostLines;
    }

    private function log(ServerRequestInterface $request, int $status, ?ResponseInterface $response, int $start): void
    {
        $entry = AccessLogEntry::of($request, $status, $response, (hrtime(true) - $start) / 1e9);
        try {
            $reason = $this->write($request, $entry);
        } catch (\Throwable $failure) {
            $reason = $failure->getMessage();
        }
        if ($reason === null) {
            return;
        }
        ++$this->lostLines;
        if ($this->warnings->isNew('')) {
            $logger = self::serverLogger($request);
            $warning = "Lines of the access log are lost, because it could not be written: {$reason}";
            $logger === null ? error_log("Spindle: {$warning}") : $logger->warning($warning);
        }
    }

    /** @return string|null the reason of a failure; null on success */
    private function write(ServerRequestInterface $request, AccessLogEntry $entry): ?string
    {
        if ($this->log instanceof LineFile) {
            return $this->log->append($entry->combined());
        }
        // Braces are escaped, because loggers replace names in braces with values of the context.
        $line = strtr($entry->combined(), ['{' => '\x7b', '}' => '\x7d']);
        $logger = $this->log ?? self::serverLogger($request);
        $logger === null ? error_log($line) : $logger->info($line, $entry->context());

        return null;
    }

    private static function serverLogger(ServerRequestInterface $request): ?LoggerInterface
    {
        $exchange = $request->getAttribute(RequestExchange::class);

        return $exchange instanceof RequestExchange ? $exchange->logger() : null;
    }
}
