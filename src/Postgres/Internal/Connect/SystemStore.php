<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Connect;

/**
 * The system's trusted authorities. OpenSSL would read them all for each connection, which blocks for 20 ms. With a
 * folder that has all of them by their hashes, OpenSSL reads only the one it needs.
 */
final class SystemStore
{
    private static string|false|null $folder = false;

    /** Returns the folder; null where only OpenSSL's default is sure to be complete. */
    public static function folder(): ?string
    {
        return self::$folder === false ? self::$folder = self::find() : self::$folder;
    }

    /** Whether the folder has as many certificates as the file: one may have been added to the file only. */
    public static function isComplete(string $folder, string $file): bool
    {
        $hashes = glob("{$folder}/*.[0-9]");
        $certificates = substr_count((string) @file_get_contents($file), '-----BEGIN CERTIFICATE-----');

        return \is_array($hashes) && $hashes !== [] && \count($hashes) >= $certificates;
    }

    private static function find(): ?string
    {
        $locations = openssl_get_cert_locations();
        if ($locations['ini_cafile'] !== '' || $locations['ini_capath'] !== '') {
            return null;
        }
        $file = realpath(self::variable($locations['default_cert_file_env']) ?? $locations['default_cert_file']);
        $folder = realpath(self::variable($locations['default_cert_dir_env']) ?? $locations['default_cert_dir']);
        if ($file === false || $folder === false) {
            return null;
        }

        return self::isComplete($folder, $file) ? $folder : null;
    }

    private static function variable(string $name): ?string
    {
        $value = getenv($name);

        return \is_string($value) && $value !== '' ? $value : null;
    }
}
