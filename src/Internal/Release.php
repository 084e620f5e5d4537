<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Composer\Autoload\ClassLoader;

/**
 * Changes the working directory of this process after a deployment, when the application's symbolic links lead to
 * another release than at the start. New child processes load the code of the new release, but inherit the working
 * directory of this process. A fork also inherits the Composer autoloader, which would load more classes of the old
 * release. So a process with a Composer autoloader of the old release can't change to another release.
 */
final readonly class Release
{
    private string $folder;

    /** @var array<string, string> real path at the start, by given path */
    private array $paths;

    /** @param string ...$names paths that may lead to a release, such as the application's file */
    public function __construct(string ...$names)
    {
        $this->folder = (string) getcwd();
        $this->paths = array_filter(array_combine($names, array_map(realpath(...), $names)), \is_string(...));
    }

    /**
     * If the working directory at the start was in a release, changes to the same directory of the current release.
     *
     * @throws ReleaseMismatchException when a Composer autoloader of the previous release would mix classes of two
     *     releases, when a path does not exist in the current release, or when chdir() fails
     */
    public function changeToCurrent(): void
    {
        clearstatcache(true); // realpath() caches where a link leads
        $folder = $this->folder;
        $release = $missing = null;
        foreach ($this->paths as $name => $before) {
            $now = realpath($name);
            // A path without links ($name === $before) names one release. A deployment may remove that release, so a
            // missing path of this kind is no failure.
            if ($now === false && $name !== $before) {
                $missing ??= $name;
            }
            if ($now !== false && $now !== $before) {
                [$oldRelease, $release] = self::difference($before, $now);
                self::refuseLibrariesOf($oldRelease, $release);
                $isInRelease = self::isIn($oldRelease, $this->folder);
                $folder = $isInRelease ? $release . substr($this->folder, \strlen($oldRelease)) : $folder;
            }
        }
        // If the new release also lacks the working directory, chdir() fails below, with a more precise exception.
        if ($missing !== null && ($release === null || is_dir($folder))) {
            throw ReleaseMismatchException::missing($missing);
        }
        // An earlier call may have changed to another release. If the links lead to the first release again, this
        // process changes to $folder, its working directory at the start.
        if (getcwd() !== $folder && !Warnings::suppressed(static fn(): bool => chdir($folder)) && $release !== null) {
            throw ReleaseMismatchException::moved($release, "its working directory can't be changed to {$folder}");
        }
    }

    /** @return array{string, string} for "/a/1/app.php" and "/a/2/app.php": "/a/1" and "/a/2" */
    private static function difference(string $before, string $now): array
    {
        while (basename($before) === basename($now)) {
            [$before, $now] = [\dirname($before), \dirname($now)];
        }

        return [$before, $now];
    }

    private static function refuseLibrariesOf(string $oldRelease, string $newRelease): void
    {
        $hasComposer = class_exists(ClassLoader::class, false);
        foreach ($hasComposer ? array_keys(ClassLoader::getRegisteredLoaders()) : [] as $vendor) {
            if (self::isIn($oldRelease, $vendor)) {
                throw ReleaseMismatchException::moved(
                    $newRelease,
                    "its libraries were loaded from {$vendor}, which a reload does not change",
                );
            }
        }
    }

    private static function isIn(string $folder, string $path): bool
    {
        return str_starts_with("{$path}/", rtrim($folder, '/') . '/');
    }
}
