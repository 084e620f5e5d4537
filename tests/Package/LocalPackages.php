<?php

declare(strict_types=1);

namespace Spindle\Tests\Package;

use Symfony\Component\Process\Process;

/** Runs Composer without a network: its only packages are those in vendor/ of this checkout, in the same versions. */
final class LocalPackages
{
    private const VENDOR = __DIR__ . '/../../vendor';

    /** Keys of composer.json that Composer needs of a package. */
    private const KEYS = ['name', 'version', 'type', 'require', 'provide', 'replace', 'conflict', 'autoload'];

    /**
     * @param array<string, mixed> $first a repository for packages that vendor/ does not have
     *
     * @return list<array<string, mixed>> value of "repositories" in composer.json
     */
    public static function repositories(array ...$first): array
    {
        $repositories = [...array_values($first), ['packagist.org' => false]];
        foreach (self::installed() as $package) {
            $dist = [
                'type' => 'path',
                'url' => (string) realpath(self::VENDOR . "/{$package['name']}"),
            ];
            $repositories[] = [
                'type' => 'package',
                'package' => array_intersect_key($package, array_flip(self::KEYS))
                    + ['dist' => $dist, 'transport-options' => ['symlink' => false]],
            ];
        }

        return $repositories;
    }

    /** Runs Composer in a folder that has a composer.json. Its settings and its cache are below `$home`. */
    public static function composer(string $folder, string $home, string ...$arguments): void
    {
        $command = ['composer', ...array_values($arguments), '--no-interaction', '--no-progress'];
        (new Process($command, $folder, [
            'COMPOSER_ALLOW_SUPERUSER' => '1',
            'COMPOSER_DISABLE_NETWORK' => '1',
            'COMPOSER_HOME' => $home,
            'COMPOSER_CACHE_DIR' => "{$home}/cache",
        ], null, 240))->mustRun();
    }

    /** @return list<array{name: string}> */
    private static function installed(): array
    {
        /** @var array{packages: list<array{name: string}>} $installed */
        $installed = json_decode(
            (string) file_get_contents(self::VENDOR . '/composer/installed.json'),
            true,
            flags: \JSON_THROW_ON_ERROR,
        );

        return $installed['packages'];
    }
}
