<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;
use Spindle\Http\AppException;

/**
 * Targets of symbolic links at the start. By now the links may lead to another release. A process can load that
 * release's code, but its working directory and Composer's autoloader come from the supervisor.
 */
final readonly class Release
{
    private string $folder;

    /** @var array<string, string> resolved path of each name */
    private array $paths;

    /** @param string ...$names of the application's file and of the working directory */
    public function __construct(private string $app, string ...$names)
    {
        $this->folder = (string) getcwd();
        $this->paths = array_filter(
            array_combine([$app, ...$names], array_map(realpath(...), [$app, ...$names])),
            \is_string(...),
        );
    }

    /**
     * Changes the working directory to the current release, if it was in the previous release.
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

    /** @return array{string, string} "/a/1" and "/a/2" of "/a/1/app.php" and "/a/2/app.php" */
    private static function difference(string $before, string $now): array
    {
        while (basename($before) === basename($now)) {
            [$before, $now] = [\dirname($before), \dirname($now)];
        }

        return [$before, $now];
    }

    private function move(string $left, string $release): void
    {
        foreach (class_exists(
            ClassLoader::class,
            false,
        ) ? array_keys(ClassLoader::getRegisteredLoaders()) : [] as $vendor) {
            if (self::isIn($left, $vendor)) {
                throw AppException::moved(
                    $this->app,
                    $release,
                    "its libraries were loaded from {$vendor}, which a reload does not change",
                );
            }
        }
        $folder = $release . substr($this->folder, \strlen($left));
        if (self::isIn($left, $this->folder) && !@chdir($folder)) {
            throw AppException::moved($this->app, $release, "its working directory can't be {$folder}");
        }
    }

    private static function isIn(string $folder, string $path): bool
    {
        return str_starts_with("{$path}/", rtrim($folder, '/') . '/');
    }
}
