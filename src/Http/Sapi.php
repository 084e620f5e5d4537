<?php

declare(strict_types=1);

namespace Spindle\Http;

use Psr\Http\Message\ResponseInterface;
use Psr\Http\Message\ServerRequestInterface;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Http\Internal\Form\BodyParser;
use Spindle\Http\Internal\Message\Fields;
use Spindle\Http\Internal\Message\HandlerFailure;
use Spindle\Http\Internal\Message\Head;
use Spindle\Http\Internal\Message\Request;
use Spindle\Http\Internal\Sapi\SapiBody;
use Spindle\Http\Internal\Sapi\SapiExchange;
use Spindle\Http\Internal\Sapi\ScriptEnd;
use Spindle\Http\Internal\Sapi\ServerVariables;
use Spindle\Http\Internal\Server\ResponseWriter;
use Spindle\Internal\FatalError;
use Spindle\Internal\PhpSettings;
use Spindle\Internal\Warnings;

/**
 * Runs an application of `spindle serve` under PHP-FPM, PHP's built-in server or any other SAPI. Each request runs the
 * front controller once. This script has two statements:
 *
 *     require __DIR__ . '/../vendor/autoload.php';
 *     Spindle\Http\Sapi::run(__DIR__ . '/../app.php');
 *
 * Handlers may suspend their fiber, as in `spindle serve`. The limits and deadlines are those of the web server and of
 * PHP. PHP itself parses multipart forms of POST requests. {@see FormLimits} apply to all other forms, and to JSON. A
 * response field named "Status" is not sent, because web servers would use its value as the status.
 *
 * If the sending of a body of unknown length fails, the PHP-FPM process kills itself. Otherwise, the client would
 * regard the response as complete.
 */
final class Sapi
{
    private function __construct() {}

    /**
     * @param RequestHandlerInterface|\Closure(ServerRequestInterface): ResponseInterface|string $app
     *     a handler, or the path of a file, as for {@see Supervisor}
     *
     * @throws AppException     when the file can't be loaded or returns no handler
     * @throws \LengthException when the body is shorter than its Content-Length; thrown after the head was sent
     * @throws \LogicException  when the handler has left open an output buffer that PHP can't remove; answered with 500
     */
    public static function run(RequestHandlerInterface|\Closure|string $app): void
    {
        $warning = error_get_last()['message'] ?? '';
        $end = ScriptEnd::register();
        $application = AppLoader::of($app);
        $variables = new ServerVariables($_SERVER);
        $head = $variables->head();
        $logger = $application->logger instanceof NullLogger ? null : $application->logger;
        $exchange = new SapiExchange(
            $head,
            $variables->connection(),
            $variables->requestTime(),
            new BodyParser($application->options->forms),
            $warning,
            $logger,
        );
        $handler = EventLoop::getErrorHandler();
        EventLoop::setErrorHandler($handler ?? static fn(\Throwable $failure) => self::logUncaught($failure, $logger));
        // Displayed errors would become part of the body.
        PhpSettings::set('display_errors', '0');
        header_remove('X-Powered-By');
        // Output of a handler is not part of a response. Here, a buffer discards the output; `spindle serve` logs it.
        $level = ob_get_level();
        $end->begin(static fn() => self::handleEnd($level, $head, $exchange), static fn() => self::endWork($exchange));
        ob_start(static fn(): string => '');
        try {
            $variables->checkHost();
            $response = $application->handle(new Request($head, $exchange));
            self::check($response);
            $body = SapiBody::of($response, $head, $exchange);
        } catch (\Throwable $failure) {
            $response = HandlerFailure::answer($failure, $exchange->logFields(), $application->logger, headers_sent());
            if (headers_sent()) { // PHP has sent output of the handler, so no other response is possible
                return;
            }
            $body = SapiBody::of($response, $head, $exchange);
        } finally {
            $isDiscarded = self::discardOutput($level);
        }
        if (!$isDiscarded) {
            throw new \LogicException(
                'The handler left open an output buffer that PHP cannot remove, and that would contain the response.'
                    . ' Call ob_start() without flags',
            );
        }
        $exchange->isHandled = true;
        self::sendAndAwaitWork($response, $body, $exchange, $application->logger);
    }

    /** Ends the output buffers above a level, including those of the handler. Returns false if one can't be removed. */
    private static function discardOutput(int $level): bool
    {
        while (ob_get_level() > $level && Warnings::suppressed(ob_end_clean(...)));

        return ob_get_level() <= $level;
    }

    /** Runs at the end of the script. Answers 500 if the handler sent no response. */
    private static function handleEnd(int $level, Head $head, SapiExchange $exchange): void
    {
        $isUnanswered = !$exchange->isHandled && !headers_sent();
        $isUnanswered ? self::answerEnd($level, $head, $exchange) : null;
        if ($exchange->isCutOff) { // PHP calls a buffer's callback even if a shutdown function calls exit()
            ob_start(SapiBody::kill(...), 0, \PHP_OUTPUT_HANDLER_REMOVABLE);
        } elseif ($isUnanswered || $exchange->isHandled) { // the response is complete, so later output is discarded
            ob_start(static fn(): string => '', 0x1_0000);
        }
    }

    /** Runs the remaining background functions last: exit() in one of them would prevent later shutdown functions. */
    private static function endWork(SapiExchange $exchange): void
    {
        self::hasFatalError() ? null : self::finishWork(!$exchange->isHandled, BackgroundWork::runAtEnd(...));
        $exchange->isCutOff ? SapiBody::kill() : null;
    }

    private static function hasFatalError(): bool
    {
        $error = FatalError::last();

        return $error !== null && !str_starts_with($error['message'], 'Uncaught ');
    }

    /** Answers with 500 after exit() or a fatal error in the handler. PHP would send no body, and 200 after exit(). */
    private static function answerEnd(int $level, Head $head, SapiExchange $exchange): void
    {
        PhpSettings::set('memory_limit', '-1'); // perhaps this limit has ended the script, and a response needs memory
        $text = self::discardOutput($level) ? "Internal Server Error\n" : ''; // a body would go into the open buffer
        header_remove();
        $response = Response::text($text, 500);
        self::send($response, SapiBody::of($response, $head, $exchange));
    }

    /**
     * Makes the same checks of the status and the fields as {@see HttpServer}, before anything is sent.
     *
     * @throws \UnexpectedValueException when the status is not from 200 to 599
     * @throws \InvalidArgumentException when the name or a value of a field is invalid
     */
    private static function check(ResponseInterface $response): void
    {
        ResponseWriter::checkStatus($response->getStatusCode());
        Fields::of($response->getHeaders());
    }

    private static function send(ResponseInterface $response, SapiBody $body): void
    {
        ignore_user_abort(true);
        self::discardOutput(0); // ends buffers that settings of PHP open: they could compress only the first piece
        // If these settings were not empty, PHP would add a default Content-Type, and a charset to text types.
        PhpSettings::set('default_mimetype', '');
        PhpSettings::set('default_charset', '');
        $status = $response->getStatusCode();
        $length = $body->length;
        $lengthLine = match (true) {
            $body->mustBeSent => $length === null ? '' : "Content-Length: {$length}",
            default => rtrim(ResponseWriter::lengthWithoutBody(
                $status,
                $response->getHeaderLine('Content-Length'),
                $length,
            )),
        };
        if ($lengthLine !== '') {
            header($lengthLine);
        }
        self::setFields($response);
        self::setStatus($status, $response->getReasonPhrase());
        if ($status === 200 && $response->hasHeader('Location') && str_contains(\PHP_SAPI, 'cgi')) {
            header('Status: 200'); // PHP sends no status 200, and for a Location without one, web servers answer 302
        }
        $body->send();
    }

    /** PHP logs an exception that ends the script, but does not name the request. So this method logs it as well. */
    private static function sendAndAwaitWork(
        ResponseInterface $response,
        SapiBody $body,
        SapiExchange $exchange,
        LoggerInterface $logger,
    ): void {
        $isSent = false;
        try {
            self::send($response, $body);
            $isSent = true;
        } catch (\Throwable $failure) {
            HandlerFailure::answer($failure, $exchange->logFields(), $logger, responseStarted: true);

            throw $failure;
        } finally {
            self::finishWork($isSent, BackgroundWork::awaitEnd(...));
        }
    }

    /**
     * @param bool $finishesResponse false if the response may be cut off: if it were finished here, it would look
     *     complete. {@see SapiBody::kill()} ends a response that was cut off
     * @param \Closure(): void $wait
     */
    private static function finishWork(bool $finishesResponse, \Closure $wait): void
    {
        if (BackgroundWork::running() > 0) {
            $finishesResponse && \function_exists('fastcgi_finish_request') ? fastcgi_finish_request() : null;
            $level = ob_get_level();
            ob_start(static fn(): string => '');
            $wait();
            self::discardOutput($level);
        }
    }

    private static function logUncaught(\Throwable $failure, ?LoggerInterface $logger): void
    {
        $logger === null ? error_log("Spindle: uncaught {$failure}") : HandlerFailure::logUncaught($failure, $logger);
    }

    private static function setFields(ResponseInterface $response): void
    {
        $status = $response->getStatusCode();
        foreach (Fields::of($response->getHeaders()) as $key => [$name, $values]) {
            $isSent = match ($key) {
                'date' => true,
                'status' => false, // in CGI and FastCGI, this field is the status of the response: RFC 3875, 6.3.3
                'upgrade' => ResponseWriter::isSent($key, $status),
                default => !isset(ResponseWriter::SERVER_FIELDS[$key]),
            };
            foreach ($isSent ? $values : [] as $value) {
                header("{$name}: {$value}", $key === 'date');
            }
        }
    }

    /** Sets the status. Must follow setFields(): there, PHP sets 302 for Location, and 401 for WWW-Authenticate. */
    private static function setStatus(int $status, string $reason): void
    {
        $line = ResponseWriter::statusLine($status, $reason);
        // header() would remove the space after the status if the reason is empty. RFC 9112, 4, requires the space.
        str_ends_with($line, ' ') ? http_response_code($status) : header($line, true, $status);
    }
}
