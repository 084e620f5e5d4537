<?php

declare(strict_types=1);

namespace Spindle\Tests;

/**
 * Completes a project that has Spindle, or a part of it, in vendor/spindle/spindle, as Composer would.
 *
 * The autoloader of the project knows Spindle and the given packages with all that these require, and nothing else. The
 * files of these packages stay in the vendor/ folder of this checkout.
 *
 * @phpstan-type Package array{
 *     name: string,
 *     require?: array<string, string>,
 *     autoload?: array{psr-4?: array<string, string|list<string>>, files?: list<string>},
 * }
 */
final class Installation
{
    public const NAME = 'spindle/spindle';

    /** The folder of Spindle in a project. */
    public const SPINDLE = 'vendor/' . self::NAME;

    private const VENDOR = __DIR__ . '/../vendor';

    /** Classes of Composer that its autoloader provides in every project. */
    private const COMPOSER = ['ClassLoader', 'InstalledVersions'];

    /**
     * @param string       $project  absolute path of the folder that has vendor/spindle/spindle
     * @param list<string> $packages names
     */
    public static function complete(string $project, array $packages): void
    {
        $vendor = "{$project}/vendor";
        mkdir("{$vendor}/composer");
        foreach (self::COMPOSER as $class) {
            copy(self::VENDOR . "/composer/{$class}.php", "{$vendor}/composer/{$class}.php");
        }
        $folders = [self::NAME => "{$project}/" . self::SPINDLE];
        $packages = self::withRequirements($packages);
        foreach ($packages as $name => $package) {
            $folders[$name] = (string) realpath(self::VENDOR . "/{$name}");
        }
        $packages[self::NAME] = self::package($folders[self::NAME]);
        self::writeReturned("{$vendor}/composer/installed.php", self::versions(array_keys($packages)));
        self::writeReturned("{$vendor}/composer/map.php", [
            'classes' => self::classes($folders),
            ...self::places($packages, $folders),
        ]);
        file_put_contents("{$vendor}/autoload.php", <<<'PHP'
            <?php
            require_once __DIR__ . '/composer/ClassLoader.php';
            $map = require __DIR__ . '/composer/map.php';
            $loader = new Composer\Autoload\ClassLoader(__DIR__);
            $loader->addClassMap($map['classes'] + [
                Composer\InstalledVersions::class => __DIR__ . '/composer/InstalledVersions.php',
            ]);
            foreach ($map['prefixes'] as $prefix => $folders) {
                $loader->setPsr4($prefix, $folders);
            }
            $loader->register();
            foreach ($map['files'] as $file) {
                require_once $file;
            }
            return $loader;
            PHP);
    }

    /**
     * @param list<string> $names
     *
     * @return array<string, Package> packages that are installed in this checkout, by name
     */
    private static function withRequirements(array $names): array
    {
        $packages = [];
        while (($name = array_shift($names)) !== null) {
            if (!isset($packages[$name]) && is_dir(self::VENDOR . "/{$name}")) {
                $packages[$name] = self::package(self::VENDOR . "/{$name}");
                array_push($names, ...array_keys($packages[$name]['require'] ?? []));
            }
        }

        return $packages;
    }

    /** @return Package */
    private static function package(string $folder): array
    {
        /** @var Package */
        return json_decode((string) file_get_contents("{$folder}/composer.json"), true, flags: \JSON_THROW_ON_ERROR);
    }

    /**
     * @param array<string, Package> $packages by name
     * @param array<string, string>  $folders  by package
     *
     * @return array{prefixes: array<string, list<string>>, files: list<string>}
     */
    private static function places(array $packages, array $folders): array
    {
        $prefixes = $files = [];
        foreach ($packages as $name => $package) {
            foreach ($package['autoload']['psr-4'] ?? [] as $prefix => $paths) {
                foreach ((array) $paths as $path) {
                    $prefixes[$prefix][] = "{$folders[$name]}/{$path}";
                }
            }
            foreach ($package['autoload']['files'] ?? [] as $file) {
                $files[] = "{$folders[$name]}/{$file}";
            }
        }

        return ['prefixes' => $prefixes, 'files' => $files];
    }

    /**
     * @param array<string, string> $folders by package
     *
     * @return array<string, string> files that Composer found in these folders, by class
     */
    private static function classes(array $folders): array
    {
        /** @var array<string, string> $all */
        $all = require self::VENDOR . '/composer/autoload_classmap.php';

        return array_filter($all, static function (string $file) use ($folders): bool {
            $isInFolder = static fn(string $folder): bool => str_starts_with($file, "{$folder}/");

            return array_filter($folders, $isInFolder) !== [];
        });
    }

    /**
     * @param list<string> $names
     *
     * @return array{root: mixed, versions: array<string, mixed>}
     */
    private static function versions(array $names): array
    {
        /** @var array{root: mixed, versions: array<string, mixed>} $all */
        $all = require self::VENDOR . '/composer/installed.php';

        return ['root' => $all['root'], 'versions' => array_intersect_key($all['versions'], array_flip($names))];
    }

    private static function writeReturned(string $file, mixed $value): void
    {
        file_put_contents($file, '<?php return ' . var_export($value, true) . ";\n");
    }
}
