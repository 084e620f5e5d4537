<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Compares the size of a command with exec's limits: execve(2), "Limits on size of arguments and environment". */
final class ArgumentSize
{
    /** Smallest length of an argument or variable that exec refuses, in bytes (32 pages). */
    private const MAX_ARG_STRLEN = 131072;

    /** Exec allows at least this number of bytes for arguments and variables together, even if `ulimit -s` is tiny. */
    public const MIN_TOTAL_BYTES = 131072;

    /** Exec allows at most this number of bytes for arguments and variables together, even if `ulimit -s` is huge. */
    private const MAX_TOTAL_BYTES = 6 << 20;

    /**
     * @param list<string> $arguments   program and arguments; empty if a shell runs `$line`
     * @param list<string> $environment `NAME=value`
     *
     * @return StartFailure|null null if all sizes are within the limits
     */
    public static function failure(array $arguments, string $line, array $environment): ?StartFailure
    {
        foreach ($arguments === [] ? [$line] : $arguments as $position => $argument) {
            if (\strlen($argument) >= self::MAX_ARG_STRLEN) {
                $what = $arguments === [] ? 'the shell line' : "argument {$position}";

                return self::tooLong($what, $argument, 'Pass the value on standard input or in a file');
            }
        }
        foreach ($environment as $variable) {
            if (\strlen($variable) >= self::MAX_ARG_STRLEN) {
                $name = explode('=', $variable, 2)[0];

                return self::tooLong(
                    "the variable '{$name}' with its name",
                    $variable,
                    'Remove or shorten the variable',
                );
            }
        }
        [$words, $variables] = [self::bytes($arguments === [] ? [$line] : $arguments), self::bytes($environment)];
        if ($words + $variables <= self::MIN_TOTAL_BYTES || $words + $variables <= ($limit = self::limit())) {
            return null;
        }

        return new StartFailure(
            126,
            "Argument list too long: the arguments have {$words} bytes and the environment has {$variables}, but the"
                . " limit for both is {$limit} (a quarter of ulimit -s, from 128 KiB to 6 MiB). Pass the values on"
                . ' standard input or in a file',
        );
    }

    private static function tooLong(string $what, string $value, string $advice): StartFailure
    {
        $size = \strlen($value) . ' bytes, but the limit is ' . (self::MAX_ARG_STRLEN - 1);

        return new StartFailure(126, "Argument list too long: {$what} has {$size}. {$advice}");
    }

    /** @param list<string> $strings exec counts a NUL and a pointer for each string, too */
    private static function bytes(array $strings): int
    {
        return array_sum(array_map(\strlen(...), $strings)) + 9 * \count($strings);
    }

    /**
     * Returns a quarter of the stack limit, at most {@see MAX_TOTAL_BYTES}; null if the stack limit is unknown. Exec
     * allows this number of bytes for all arguments and variables together, and at least {@see MIN_TOTAL_BYTES}.
     */
    public static function totalBytes(): ?int
    {
        $stack = \function_exists('posix_getrlimit') ? (posix_getrlimit()['soft stack'] ?? null) : null;

        return match (true) {
            \is_int($stack) => min(intdiv($stack, 4), self::MAX_TOTAL_BYTES),
            $stack === 'unlimited' => self::MAX_TOTAL_BYTES,
            default => null,
        };
    }

    /** Returns exec's limit minus a margin of one page. An unknown stack limit counts as 8 MiB, the usual default. */
    private static function limit(): int
    {
        return max(self::MIN_TOTAL_BYTES, (self::totalBytes() ?? 2 << 20) - 4096);
    }
}
