<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** PHP's stream functions tell why they fail only by warnings. */
final class Warnings
{
    /**
     * @template T
     *
     * @param \Closure(): T $call
     *
     * @return array{T, string} what it returned, and its last warning, '' for none
     */
    public static function of(\Closure $call): array
    {
        $last = '';
        set_error_handler(static function (int $level, string $message) use (&$last): bool {
            $last = $message;

            return true;
        });
        try {
            return [$call(), $last];
        } finally {
            restore_error_handler();
        }
    }

    /** What a warning of a stream function has to say beside the function and the address: "connection refused". */
    public static function clause(string $warning): string
    {
        $text = trim((string) preg_replace(['~^[\w\\\\]+\(\): ~', '~^SSL operation failed with code \d+\. OpenSSL Error messages:~', '~\berror:[0-9A-F]+:[^:]*:[^:]*:~', '~\s+~'], ['', '', '', ' '], $warning));
        if (preg_match('~ \(([^()]+)\)$~', $text, $part) === 1) {
            $text = $part[1];
        }

        return preg_match('~^[A-Z][a-z]~', $text) === 1 ? lcfirst($text) : $text;
    }
}
