<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;
use Spindle\Http\AppException;
use Spindle\Internal\Warnings;

/**
 * Remembers where symbolic links lead when the supervisor starts. Later, the links may lead to another release of
 * the application. A new process can load the code of that release. But the process has inherited the working
 * directory and the Composer autoloader of the supervisor.
 */
final readonly class Release
{
    /** Working directory of the supervisor at its start. */
    private string $folder;

    /** @var array<string, string> by given path: where it led when the supervisor started */
    private array $paths;

    /**
     * @param string $app      the application's file
     * @param string ...$names other paths that may lead to a release, such as the working directory
     */
    public function __construct(private string $app, string ...$names)
    {
        $this->folder = (string) getcwd();
        $this->paths = array_filter(
            array_combine([$app, ...$names], array_map(realpath(...), [$app, ...$names])),
            \is_string(...),
        );
    }

    /**
     * If the working directory is in the previous release, changes it to the current release.
     *
     * @throws AppException when libraries of the previous release were loaded: classes of two releases would be mixed
     */
    public function follow(): void
    {
        foreach ($this->paths as $name => $before) {
            $now = realpath($name);
            if ($now !== false && $now !== $before) {
                $this->move(...self::difference($before, $now));
            }
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

    private function move(string $oldRelease, string $newRelease): void
    {
        foreach (class_exists(
            ClassLoader::class,
            false,
        ) ? array_keys(ClassLoader::getRegisteredLoaders()) : [] as $vendor) {
            if (self::isIn($oldRelease, $vendor)) {
                throw AppException::moved(
                    $this->app,
                    $newRelease,
                    "its libraries were loaded from {$vendor}, which a reload does not change",
                );
            }
        }
        $folder = $newRelease . substr($this->folder, \strlen($oldRelease));
        if (self::isIn($oldRelease, $this->folder) && !Warnings::suppressed(static fn(): bool => chdir($folder))) {
            throw AppException::moved($this->app, $newRelease, "its working directory can't be {$folder}");
        }
    }

    private static function isIn(string $folder, string $path): bool
    {
        return str_starts_with("{$path}/", rtrim($folder, '/') . '/');
    }
}
