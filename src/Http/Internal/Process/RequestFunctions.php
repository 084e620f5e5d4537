<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Spindle\Http\UnsupportedFunctionException;

/**
 * PHP's functions that change the answer to the one request of a process. In a process of the server they would do
 * nothing, without a word, or concern all requests. PHP is started without them (disable_functions), and then functions
 * of the same names are defined that throw.
 *
 * Functions that only read or remove such changes stay PHP's own: as nothing is ever changed, their results are right.
 */
final class RequestFunctions
{
    private const ANSWER = 'has no effect in spindle serve, as one process answers many requests at once';
    private const SESSION = 'would share one session among all clients of a process of spindle serve';
    private const COOKIE = 'return a response that sets the cookie, as $response->withAddedHeader(\'Set-Cookie\', \'name=value; Path=/; HttpOnly; SameSite=Lax\')';

    /** What each function does not do here, and what to do instead. */
    private const THROWING = [
        'header' => [self::ANSWER, 'return a response that has the header, as $response->withHeader(\'Name\', \'value\')'],
        'header_register_callback' => [self::ANSWER, 'change the response in a PSR-15 middleware'],
        'http_response_code' => [self::ANSWER, 'return a response that has the status, as $response->withStatus(404)'],
        'session_start' => [self::SESSION, 'use a PSR-15 middleware for sessions, which finds the session by a cookie of the request and keeps it in a request attribute'],
        'setcookie' => [self::ANSWER, self::COOKIE],
        'setrawcookie' => [self::ANSWER, self::COOKIE],
    ];

    /** The time limit of PHP counts for the process, and ends it with all requests: the server has a limit for each request. */
    private const WITHOUT_EFFECT = ['set_time_limit'];

    /** PHP writes to standard error, and waits for its reader with all requests. The log does not wait. */
    private const WAITING = ['error_log'];

    /** What error_log() writes to; null for standard error. */
    private static ?LoggerInterface $log = null;

    private function __construct() {}

    /** @return list<string> that PHP has to be started without */
    public static function names(): array
    {
        return [...array_keys(self::THROWING), ...self::WITHOUT_EFFECT, ...self::WAITING];
    }

    /** Whether this PHP was started without them. */
    public static function areDisabled(): bool
    {
        return array_filter(self::names(), self::isOfPhp(...)) === [];
    }

    /** Has error_log() write to this log, unless the setting error_log names a file; in a PHP that was started without it. */
    public static function logTo(LoggerInterface $log): void
    {
        self::$log = $log;
    }

    public static function log(string $message): bool
    {
        $file = (string) \ini_get('error_log');
        if ($file === '' && self::$log !== null) {
            self::$log->error('{message}', ['message' => $message]);

            return true;
        }

        return match ($file) {
            '' => fwrite(\STDERR, "{$message}\n") !== false,
            'syslog' => syslog(\LOG_NOTICE, $message),
            default => @file_put_contents($file, '[' . gmdate('d-M-Y H:i:s') . " UTC] {$message}\n", \FILE_APPEND) !== false,
        };
    }

    /** Defines those that this PHP was started without, for the rest of this process. */
    public static function define(): void
    {
        require_once __DIR__ . '/error-log.php';
        require_once __DIR__ . '/request-functions.php';
        if (\extension_loaded('session') && session_status() === \PHP_SESSION_NONE && !headers_sent()) {
            session_set_save_handler(new NoSessions(), false); // for a PHP that was not started without session_start()
        }
    }

    /** @param key-of<self::THROWING> $function */
    public static function refuse(string $function): never
    {
        throw UnsupportedFunctionException::called($function, ...self::THROWING[$function]);
    }

    private static function isOfPhp(string $function): bool
    {
        return \function_exists($function) && (new \ReflectionFunction($function))->isInternal();
    }
}
