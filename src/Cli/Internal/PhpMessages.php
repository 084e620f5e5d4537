<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Spindle\Internal\FatalError;

/**
 * What PHP itself has to say in `spindle serve` and `spindle work` is an entry of its log, and no line besides. An application that sets an
 * error handler has that instead.
 */
final class PhpMessages
{
    private const NOTICES = \E_NOTICE | \E_USER_NOTICE | \E_DEPRECATED | \E_USER_DEPRECATED;

    private function __construct() {}

    /** In this process and those that it forks, whose fatal errors it is told otherwise. */
    public static function logTo(LoggerInterface $log): void
    {
        ini_set('display_errors', '0');
        ini_set('log_errors', '0');
        set_error_handler(static function (int $level, string $message, string $file, int $line) use ($log): bool {
            if ((error_reporting() & $level) === 0) {
                return false; // for error_get_last()
            }
            self::log($log, ($level & self::NOTICES) !== 0 ? LogLevel::NOTICE : LogLevel::WARNING, $message, $file, $line);

            return true;
        }, ~FatalError::LEVELS);
        $pid = (int) getmypid();
        register_shutdown_function(static function () use ($log, $pid): void {
            $error = FatalError::last();
            if ($error !== null && !self::isForkOf($pid)) {
                ini_set('memory_limit', -1); // it may be what ended this
                self::log($log, LogLevel::CRITICAL, $error['message'], $error['file'], $error['line']);
            }
            ini_set('display_errors', 'stderr'); // a fatal error from here on is told by nobody else
        });
    }

    private static function log(LoggerInterface $log, string $level, string $message, string $file, int $line): void
    {
        $log->log($level, 'PHP: {message} ({file}, line {line})', ['message' => $message, 'file' => $file, 'line' => $line]);
    }

    /** Not of what a fork forks. */
    private static function isForkOf(int $pid): bool
    {
        return \function_exists('posix_getppid') && posix_getppid() === $pid;
    }
}
