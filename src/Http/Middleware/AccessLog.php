<?php

declare(strict_types=1);

namespace Spindle\Http\Middleware;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\MiddlewareInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Spindle\Http\HttpException;
use Spindle\Http\Internal\AccessLine;
use Spindle\Http\Internal\Message\Exchange;
use Spindle\Http\Internal\Middleware\Departure;
use Spindle\Http\Internal\Server\Recurrences;
use Spindle\Internal\LineFile;

/**
 * Logs each answer of a handler, in Apache's combined format: quotes, backslashes and all bytes but printable ASCII
 * are written as \xhh. What a handler throws is logged with the status that it is going to have, unless the client has left.
 * The duration is up to the response, before its body is sent; a body of unknown length counts as "-".
 *
 * What the server answers without a handler is not here, but in its statistics by status: what is malformed, too large or too
 * late, too many requests at once. A handler that answers after its deadline is logged with its own answer, though the client
 * was given 503 before; of that the server's log tells.
 *
 * A log that can't be written harms no request. The lines are lost and counted. The server's log, or else PHP's error log,
 * gets a warning when that begins, and anew when it begins again after a quiet minute.
 *
 * It knows the client and the id by what {@see TrustedProxies} and {@see RequestId} have found, when these stand before it.
 */
final class AccessLog implements MiddlewareInterface
{
    private int $lost = 0;

    private readonly Recurrences $warnings;

    private function __construct(private readonly LoggerInterface|LineFile $log)
    {
        $this->warnings = new Recurrences();
    }

    /** At info level; in the context: method, target, status, bytes, duration (seconds), client_ip, request_id, user_agent, referer. */
    public static function toLogger(LoggerInterface $logger): self
    {
        return new self($logger);
    }

    /**
     * Lines go to the end of a file, which may be a named pipe. To rotate it, copy and truncate it, or reload the server after moving it.
     *
     * @throws AccessLogException when the file can't be opened
     */
    public static function toFile(string $path): self
    {
        error_clear_last();
        // Without waiting for a pipe's reader, and not to be inherited by commands.
        $stream = @fopen($path, 'ane');

        return $stream !== false ? new self(new LineFile($stream)) : throw AccessLogException::cantOpen($path, error_get_last()['message'] ?? 'unknown error');
    }

    /** @param resource $stream such as STDOUT; made non-blocking unless it is a terminal, and left open */
    public static function toStream(mixed $stream): self
    {
        stream_isatty($stream) || stream_set_blocking($stream, false);

        return new self(new LineFile($stream));
    }

    public function process(ServerRequestInterface $request, RequestHandlerInterface $handler): ResponseInterface
    {
        $begun = hrtime(true);
        try {
            $response = $handler->handle($request);
        } catch (\Throwable $failure) {
            if (!Departure::caused($failure)) {
                $this->log($request, AccessLine::of($request, $failure instanceof HttpException ? $failure->status : 500, null, (hrtime(true) - $begun) / 1e9));
            }
            throw $failure;
        }
        $this->log($request, AccessLine::of($request, $response->getStatusCode(), $response, (hrtime(true) - $begun) / 1e9));

        return $response;
    }

    /** How many lines could not be written. */
    public function lostLines(): int
    {
        return $this->lost;
    }

    private function log(ServerRequestInterface $request, AccessLine $line): void
    {
        try {
            $why = $this->write($line);
        } catch (\Throwable $failure) {
            $why = $failure->getMessage();
        }
        if ($why === null) {
            return;
        }
        ++$this->lost;
        if ($this->warnings->begins('')) {
            $exchange = $request->getAttribute(Exchange::class);
            $logger = $exchange instanceof Exchange ? $exchange->logger() : null;
            $warning = "The access log can't be written, so that requests are missing in it: {$why}";
            $logger === null ? error_log("Spindle: {$warning}") : $logger->warning($warning);
        }
    }

    /** @return string|null why it was not written; null when it was */
    private function write(AccessLine $line): ?string
    {
        if ($this->log instanceof LineFile) {
            return $this->log->append($line->combined());
        }
        // In braces a logger would look for names from the context.
        $this->log->info(strtr($line->combined(), ['{' => '\x7b', '}' => '\x7d']), $line->context());

        return null;
    }
}
