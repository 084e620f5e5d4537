<?php

declare(strict_types=1);

namespace Spindle\Internal\Network;

use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\Warnings;

/**
 * Finds the folder with the operating system's trusted certificate authorities. By default, OpenSSL would read one file
 * with all authorities for each connection, and block for 20 ms. In the folder, each authority has its own file, and
 * the file name is a hash of the authority's name. So OpenSSL reads only the file of one authority.
 */
final class SystemStore
{
    /** The result of {@see find()}; false before the first call. */
    private static string|false|null $folder = false;

    /** Returns the folder; null if OpenSSL's default should be used. */
    public static function folder(): ?string
    {
        return self::$folder === false ? self::$folder = Warnings::suppressed(self::find(...)) : self::$folder;
    }

    /** Returns whether the folder has at least as many certificates as `$file`, which contains all authorities. */
    public static function isComplete(string $folder, string $file): bool
    {
        $hashes = glob("{$folder}/*.[0-9]");
        $certificates = substr_count((string) Files::read($file), '-----BEGIN CERTIFICATE-----');

        return \is_array($hashes) && $hashes !== [] && \count($hashes) >= $certificates;
    }

    private static function find(): ?string
    {
        $locations = openssl_get_cert_locations();
        if (
            $locations['ini_cafile'] !== ''
            || $locations['ini_capath'] !== ''
            || self::variable($locations['default_cert_file_env']) !== null
        ) {
            return null;
        }
        $file = realpath($locations['default_cert_file']);
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
