<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/** Parses libpq's keyword "options": command line options for the server. Only assignments of settings are allowed. */
final class CommandLineOptions
{
    /**
     * @return array<string, string> values by the names of settings
     *
     * @throws \ValueError when the value contains an option that does not assign a setting
     */
    public static function settings(string $options): array
    {
        $settings = [];
        preg_match_all('~(?:[^\s\\\\]++|\\\\.)++~s', $options, $found);
        $words = array_map(
            static fn(string $word): string => (string) preg_replace('~\\\\(.)~s', '$1', $word),
            $found[0],
        );
        while (($word = array_shift($words)) !== null) {
            // "-c name=value", "-cname=value" and "--name=value" are equivalent.
            $pair = $word === '-c' ? array_shift($words) ?? '' : (string) preg_replace('~^(?:-c|--)~', '', $word);
            if (!str_starts_with($word, '-c') && !str_starts_with($word, '--') || !str_contains($pair, '=')) {
                throw new \ValueError(
                    "In a PostgreSQL DSN, 'options' accepts only settings such as '-c name=value', not "
                        . json_encode($word, \JSON_INVALID_UTF8_SUBSTITUTE),
                );
            }
            [$name, $value] = explode('=', $pair, 2);
            $settings[strtr($name, '-', '_')] = $value;
        }

        return $settings;
    }
}
