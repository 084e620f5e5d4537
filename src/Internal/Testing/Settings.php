<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** What a temporary server is told by its user, for a file of one line for each. */
final class Settings
{
    /**
     * @param array<string, string|int|float|bool> $settings
     * @param list<string>                         $itsOwn   names of those that the server gives itself
     * @param string                               $server   what to call the server
     *
     * @throws \ValueError
     */
    public static function check(array $settings, array $itsOwn, string $server, string $file): void
    {
        foreach ($settings as $name => $value) {
            if (\in_array(strtolower($name), $itsOwn, true)) {
                throw new \ValueError("A temporary {$server} chooses its own {$name}");
            }
            if (preg_match('~[\r\n\0]~', "{$name}{$value}") === 1) {
                throw new \ValueError('The setting ' . strtok($name, "\r\n\0") . " has a line break or a NUL byte, which {$file} can't hold");
            }
        }
    }
}
