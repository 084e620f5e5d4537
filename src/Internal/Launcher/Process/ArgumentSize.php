<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Compares sizes with exec's limits. See execve(2), "Limits on size of arguments and environment". */
final class ArgumentSize
{
    /** Smallest length of an argument or variable that exec refuses, in bytes (32 pages). */
    private const MAX_ARG_STRLEN = 131072;

    /** Smallest limit of exec for all arguments and variables together, however small `ulimit -s` is. */
    public const MIN_TOTAL_BYTES = 131072;

    /** Largest limit of exec for all arguments and variables together, however large `ulimit -s` is. */
    private const MAX_TOTAL_BYTES = 6 << 20;

    /**
     * @param list<string> $arguments   empty for a shell line
     * @param list<string> $environment `NAME=value`
     *
     * @return StartFailure|null null if the sizes are below the limits
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
        return new StartFailure(126, \sprintf(
            'Argument list too long: %s has %d bytes, but the limit is %d. %s',
            $what,
            \strlen($value),
            self::MAX_ARG_STRLEN - 1,
            $advice,
        ));
    }

    /** @param list<string> $strings exec also counts the NUL and the pointer of each string */
    private static function bytes(array $strings): int
    {
        return array_sum(array_map(\strlen(...), $strings)) + 9 * \count($strings);
    }

    /**
     * Returns exec's limit for all arguments and variables together, in bytes: a quarter of the stack limit, but at
     * most {@see MAX_TOTAL_BYTES}. Returns null if the stack limit is unknown.
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

    /** Returns exec's limit minus a page. An unknown stack limit is assumed to be 8 MiB, as usual. */
    private static function limit(): int
    {
        return max(self::MIN_TOTAL_BYTES, (self::totalBytes() ?? 2 << 20) - 4096);
    }
}
