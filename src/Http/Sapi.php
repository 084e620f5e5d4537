<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Message\StreamInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\NullLogger;
use Spindle\Http\Internal\Answer\EventStream;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Http\Internal\Form\FormReader;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Request;
use Spindle\Http\Internal\Sapi\SapiEnvironment;
use Spindle\Http\Internal\Sapi\SapiExchange;
use Spindle\Http\Internal\Server\OutgoingBody;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Internal\Launcher\Process\Libc;

/**
 * Runs an application of `spindle serve` under PHP-FPM, PHP's built-in server or any other SAPI. Each run of the script
 * handles one request. The front controller has three lines:
 *
 *     require __DIR__ . '/../vendor/autoload.php';
 *     Spindle\Http\Sapi::run(__DIR__ . '/../app.php');
 *
 * Handlers may suspend as they do in the server. The limits and deadlines of the web server and of PHP apply, except
 * for forms. PHP itself parses multipart forms of POST requests, within its own limits.
 *
 * When a body of unknown length fails while it is sent, the process of PHP-FPM is killed. Otherwise the client would
 * take the response for complete.
 */
final class Sapi
{
    /** Seconds for an iterator of events, after its client has left. Then the script ends. */
    private const EVENTS_END_TIMEOUT = 10.0;

    private function __construct() {}

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface|string $app
     *     or the path of a file that returns one
     *
     * @throws AppException     when the file returns no handler
     * @throws \LengthException when the body is shorter than its Content-Length, after the head was sent
     */
    public static function run(RequestHandlerInterface|\Closure|string $app): void
    {
        $warning = error_get_last()['message'] ?? '';
        $application = AppLoader::of($app);
        $environment = new SapiEnvironment($_SERVER);
        $head = $environment->head();
        $logger = $application->logger instanceof NullLogger ? null : $application->logger;
        $exchange = new SapiExchange(
            $head,
            $environment->peer(),
            $environment->time(),
            new FormReader($application->options->forms),
            $warning,
            $logger,
        );
        // Output of a handler is not part of its response. In the server it goes to the terminal.
        $level = ob_get_level();
        ob_start(static fn(): string => '');
        try {
            $response = $application->handle(new Request($head, $exchange));
            self::check($response);
        } catch (\Throwable $failure) {
            $response = HandlerFailure::answer($failure, $head, $application->logger);
        } finally {
            while (ob_get_level() > $level && @ob_end_clean()); // also buffers that the handler has left open
        }
        self::send($response, $head, $exchange);
    }

    /**
     * Makes the same checks as the server, before anything is sent.
     *
     * @throws \UnexpectedValueException when the status is not a final one
     * @throws \InvalidArgumentException when a field can't be sent unchanged
     */
    private static function check(ResponseInterface $response): void
    {
        ResponseWriter::checkStatus($response->getStatusCode());
        Fields::of($response->getHeaders());
    }

    private static function send(ResponseInterface $response, Head $head, SapiExchange $exchange): void
    {
        ignore_user_abort(true);
        // Otherwise PHP adds a missing Content-Type, and a charset to text types without one.
        ini_set('default_mimetype', '');
        ini_set('default_charset', '');
        // Displayed errors would become part of the body.
        ini_set('display_errors', '0');
        header_remove('X-Powered-By');
        $given = $response instanceof Response ? $response->body() : null;
        $whole = \is_string($given) ? \strlen($given) : null;
        $body = $response->getBody();
        $status = $response->getStatusCode();
        $line = ResponseWriter::statusLine($status, $response->getReasonPhrase());
        // PHP would remove the space before an empty reason, which RFC 9112, 4, requires.
        str_ends_with($line, ' ') ? http_response_code($status) : header($line, true, $status);
        foreach ($response->getHeaders() as $name => $values) {
            $key = strtolower((string) $name);
            $isUpgrade = $key === 'upgrade' && ResponseWriter::isSent($key, $status);
            if (!isset(ResponseWriter::SERVER_FIELDS[$key]) || $isUpgrade) {
                foreach ($values as $value) {
                    header("{$name}: {$value}", false);
                }
            }
        }
        $length = $whole ?? ResponseWriter::length($response, $body);
        $hasBody = ResponseWriter::hasBody($status, $head);
        $line = match (true) {
            $hasBody => $length === null ? '' : "Content-Length: {$length}",
            default => rtrim(ResponseWriter::lengthWithoutBody(
                $status,
                $response->getHeaderLine('Content-Length'),
                $length,
            )),
        };
        if ($line !== '') {
            header($line);
        }
        try {
            if ($hasBody) {
                self::sendBody($body, $length, $exchange);
            }
        } catch (\Throwable $failure) {
            $length === null ? self::breakOff() : null;
            throw $failure;
        } finally {
            $body->close();
            $body instanceof EventStream ? $body->awaitEnd(self::EVENTS_END_TIMEOUT) : null;
        }
    }

    /**
     * Breaks off a response of unknown length, so that the client does not take it for complete. PHP-FPM ends each
     * response properly unless the process is killed. It then starts another process. The exception is logged before.
     */
    private static function breakOff(): void
    {
        if (\PHP_SAPI === 'fpm-fcgi' && \function_exists('posix_kill')) {
            register_shutdown_function(static fn(): bool => posix_kill(posix_getpid(), Libc::SIGKILL));
        }
    }

    /** @throws \LengthException */
    private static function sendBody(StreamInterface $body, ?int $length, SapiExchange $exchange): void
    {
        foreach ((new OutgoingBody($body))->pieces($length, false) as $piece) {
            echo $piece;
            while (ob_get_level() > 0) {
                ob_end_flush();
            }
            flush();
            if (connection_aborted() === 1) {
                $exchange->clientLeft();

                return;
            }
        }
    }
}
