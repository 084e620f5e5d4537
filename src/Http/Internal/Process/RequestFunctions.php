<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Spindle\Http\Internal\Server\RequestName;
use Spindle\Http\UnsupportedFunctionException;
use Spindle\Internal\Warnings;

/**
 * Replaces PHP functions that would silently do nothing in a server process, or affect all requests. PHP is started
 * without these functions (disable_functions). Then {@see define()} defines functions with the same names. Most throw.
 *
 * Functions that only read or remove header fields and cookies are not replaced. Their results are right, because no
 * function can have set a field or a cookie.
 */
final class RequestFunctions
{
    private const NO_EFFECT_REASON = 'has no effect in spindle serve, because one process handles many'
        . ' requests at once';
    private const SHARED_SESSION_REASON = 'would share one session among all clients of a process of spindle serve';
    private const COOKIE_ADVICE = 'return a response that sets the cookie, for example'
        . ' $response->withAddedHeader(\'Set-Cookie\', \'name=value; Path=/; HttpOnly; SameSite=Lax\')';

    private const THROWING_FUNCTIONS = [
        'header' => [
            self::NO_EFFECT_REASON,
            'return a response that has the header, for example $response->withHeader(\'Name\', \'value\')',
        ],
        'header_register_callback' => [self::NO_EFFECT_REASON, 'change the response in a PSR-15 middleware'],
        'http_response_code' => [
            self::NO_EFFECT_REASON,
            'return a response that has the status, for example $response->withStatus(404)',
        ],
        'session_start' => [self::SHARED_SESSION_REASON, 'use a PSR-15 middleware for sessions'],
        'setcookie' => [self::NO_EFFECT_REASON, self::COOKIE_ADVICE],
        'setrawcookie' => [self::NO_EFFECT_REASON, self::COOKIE_ADVICE],
    ];

    /** Functions that do nothing, because PHP's limit would end the process. Use HttpServerOptions::$handlerTimeout. */
    private const NO_OP_FUNCTIONS = ['set_time_limit'];

    /** PHP's error_log() blocks all requests while standard error accepts no bytes. Spindle's log does not block. */
    private const BLOCKING_FUNCTIONS = ['error_log'];

    private static ?LoggerInterface $log = null;

    /** @return list<string> the functions to disable at PHP's start */
    public static function names(): array
    {
        return [...array_keys(self::THROWING_FUNCTIONS), ...self::NO_OP_FUNCTIONS, ...self::BLOCKING_FUNCTIONS];
    }

    /** Returns whether this PHP was started without the functions in {@see names()}. */
    public static function areDisabled(): bool
    {
        return array_filter(self::names(), self::isOfPhp(...)) === [];
    }

    /** Makes the replacement of error_log() write to this log, unless PHP's setting error_log is set. */
    public static function logTo(LoggerInterface $log): void
    {
        self::$log = $log;
    }

    /** Writes a message of error_log() to the log, or to the destination in PHP's setting error_log. */
    public static function log(string $message): bool
    {
        $file = (string) \ini_get('error_log');
        if ($file === '' && self::$log !== null) {
            self::$log->error('{message}', ['message' => $message] + RequestName::logFields());

            return true;
        }

        return match ($file) {
            '' => fwrite(\STDERR, "{$message}\n") !== false,
            'syslog' => syslog(\LOG_NOTICE, $message),
            default => Warnings::suppressed(static fn(): int|false => file_put_contents(
                $file,
                '[' . gmdate('d-M-Y H:i:s') . " UTC] {$message}\n",
                \FILE_APPEND,
            )) !== false,
        };
    }

    /** Defines the functions that PHP was started without, for the rest of this process. */
    public static function define(): void
    {
        require_once __DIR__ . '/request-functions.php';
        if (\extension_loaded('session') && session_status() === \PHP_SESSION_NONE && !headers_sent()) {
            session_set_save_handler(new NoSessions(), false); // in case PHP still has its own session_start()
        }
    }

    /** @param key-of<self::THROWING_FUNCTIONS> $function */
    public static function refuse(string $function): never
    {
        throw UnsupportedFunctionException::called($function, ...self::THROWING_FUNCTIONS[$function]);
    }

    private static function isOfPhp(string $function): bool
    {
        return \function_exists($function) && (new \ReflectionFunction($function))->isInternal();
    }
}
