<?php

declare(strict_types=1);

namespace Spindle\Internal\Testing;

/** Checks the caller's settings of a temporary server. The server reads them from a file, one setting per line. */
final class TestServerSettings
{
    /**
     * @param array<string, string|int|float|bool> $settings
     * @param list<string>                         $reserved   names of settings that the server chooses
     * @param string                               $server     name of the server in messages
     * @param string                               $file       name of the file with the settings, for messages
     *
     * @throws \ValueError when a setting is reserved or contains a line break or NUL
     */
    public static function check(array $settings, array $reserved, string $server, string $file): void
    {
        foreach ($settings as $name => $value) {
            if (\in_array(strtolower($name), $reserved, true)) {
                throw new \ValueError("A temporary {$server} chooses its own {$name}. Remove this setting");
            }
            if (preg_match('~[\r\n\0]~', "{$name}{$value}") === 1) {
                throw new \ValueError(
                    'The setting '
                        . strtok($name, "\r\n\0")
                        . " contains a line break or a NUL byte, which {$file} cannot hold",
                );
            }
        }
    }
}
