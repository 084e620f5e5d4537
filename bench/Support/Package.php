<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

use Composer\InstalledVersions;

/** A Composer package, which may be missing. */
final class Package
{
    public static function label(string $name): string
    {
        $version = InstalledVersions::isInstalled($name) ? InstalledVersions::getPrettyVersion($name) : null;

        return trim("{$name} " . ltrim((string) $version, 'v'));
    }

    /** @param class-string $class */
    public static function missing(string $name, string $class): ?string
    {
        return class_exists($class) ? null : "the package {$name} is not installed";
    }
}
