<?php

declare(strict_types=1);

namespace Spindle\Remote\Testing\Internal;

use Spindle\Internal\Testing\PrivateDirectory;
use Spindle\Internal\Testing\ServerException;
use Spindle\Remote\Testing\TemporaryRedisOptions;

/** Writes the server's configuration file. The command line sets the ports, because a start may try several. */
final class Configuration
{
    /** Settings that the caller can't choose, because Spindle sets them or needs their defaults. */
    public const RESERVED_SETTINGS = [
        'bind', 'daemonize', 'dir', 'logfile', 'pidfile', 'port', 'proc-title-template', 'requirepass', 'supervised',
        'tls-cert-file',
        'tls-key-file', 'tls-port', 'unixsocket', 'unixsocketperm',
    ];

    private const DEFAULTS = [
        'appendonly' => true,
        'appendfsync' => 'everysec',
        'save' => '',
        'maxmemory-policy' => 'noeviction',
    ];

    /**
     * @param array<string, string|int|float|bool> $settings
     *
     * @return string path of the configuration file
     *
     * @throws ServerException
     */
    public static function write(
        PrivateDirectory $directory,
        #[\SensitiveParameter]
        string $password,
        array $settings,
        TemporaryRedisOptions $options,
    ): string {
        $all = [
            ...self::DEFAULTS,
            ...self::tls($directory, $options),
            ...array_change_key_case($settings),
            'bind' => '127.0.0.1',
            'unixsocket' => self::quoted("{$directory->path}/socket"),
            'unixsocketperm' => 700,
            'dir' => self::quoted($directory->path . '/data'),
            'requirepass' => $password,
            'proc-title-template' => '"{title} {config-file}"', // RedisLeftovers finds processes by this path
        ];
        $lines = '';
        foreach ($all as $name => $value) {
            $text = \is_bool($value) ? ($value ? 'yes' : 'no') : (string) $value;
            $lines .= "{$name} " . ($text === '' ? '""' : $text) . "\n";
        }

        return $directory->write('redis.conf', $lines);
    }

    /** @return array<string, string|bool> */
    private static function tls(PrivateDirectory $directory, TemporaryRedisOptions $options): array
    {
        if ($options->certificate === null || $options->key === null) {
            return [];
        }

        return [
            'tls-cert-file' => self::quoted($directory->copy($options->certificate, 'certificate.pem')),
            'tls-key-file' => self::quoted($directory->copy($options->key, 'key.pem')),
            'tls-auth-clients' => false,
        ];
    }

    private static function quoted(string $text): string
    {
        return '"' . addcslashes($text, '"\\') . '"';
    }
}
