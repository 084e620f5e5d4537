<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Psr\Log\LoggerInterface;
use Psr\Log\LogLevel;
use Spindle\Internal\FatalError;
use Spindle\Internal\PhpSettings;

/** Logs PHP's errors in `serve` and `work`. If the application has an error handler, only fatal errors are logged. */
final class PhpMessages
{
    private const NOTICES = \E_NOTICE | \E_USER_NOTICE | \E_DEPRECATED | \E_USER_DEPRECATED;

    /**
     * Logs messages of this process and its forks. A fatal error of a fork is reported only by the parent process.
     *
     * @param \Closure(): array<string, string> $context returns the context of a message that is not fatal
     */
    public static function logTo(LoggerInterface $log, \Closure $context): void
    {
        PhpSettings::set('display_errors', '0');
        PhpSettings::set('log_errors', '0');
        set_error_handler(static function (int $level, string $message, string $file, int $line) use (
            $log,
            $context,
        ): bool {
            if ((error_reporting() & $level) === 0) {
                return false; // PHP's own handler stores the message, so that error_get_last() returns it
            }
            self::log(
                $log,
                ($level & self::NOTICES) !== 0 ? LogLevel::NOTICE : LogLevel::WARNING,
                $message,
                $file,
                $line,
                $context(),
            );

            return true;
        }, ~FatalError::LEVELS);
        $pid = (int) getmypid();
        register_shutdown_function(static function () use ($log, $pid): void {
            $error = FatalError::last();
            if ($error !== null && !self::isForkOf($pid)) {
                PhpSettings::set('memory_limit', '-1'); // the limit may have caused the error
                self::log($log, LogLevel::CRITICAL, $error['message'], $error['file'], $error['line']);
            }
            // If a later shutdown function has a fatal error, only PHP can report the error, by printing it.
            PhpSettings::set('display_errors', 'stderr');
        });
    }

    /** @param array<string, string> $context */
    private static function log(
        LoggerInterface $log,
        string $level,
        string $message,
        string $file,
        int $line,
        array $context = [],
    ): void {
        $log->log(
            $level,
            'PHP: {message} ({file}, line {line})',
            ['message' => $message, 'file' => $file, 'line' => $line] + $context,
        );
    }

    private static function isForkOf(int $pid): bool
    {
        return \function_exists('posix_getppid') && posix_getppid() === $pid;
    }
}
