<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** A temporary server failed to start, or its files were inaccessible. Callers throw a public exception instead. */
final class ServerException extends \RuntimeException
{
    /** @param string $output end of the server's log if the server did not become ready; '' for other failures */
    private function __construct(string $message, public readonly string $output = '')
    {
        parent::__construct($message);
    }

    public static function cannotDo(string $what, string $why): self
    {
        return new self("{$what}: {$why}");
    }

    public static function noLog(string $why): self
    {
        return self::cannotDo('The log of the server could not be read', $why);
    }

    public static function ended(string $name, string $log): self
    {
        return new self("The {$name} server ended before it was ready" . self::introduction($log), $log);
    }

    /** @param float $seconds time limit */
    public static function late(string $name, float $seconds, string $log): self
    {
        return new self("The {$name} server was not ready within {$seconds} seconds" . self::introduction($log), $log);
    }

    private static function introduction(string $log): string
    {
        return $log === '' ? '; its log is empty' : '; the end of its log';
    }
}
