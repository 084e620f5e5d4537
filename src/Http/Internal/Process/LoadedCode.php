<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\LoadedFiles;

/** The files that the supervisor has loaded. Forks inherit their code, so a reload does not load a changed version. */
final class LoadedCode
{
    /** @var array<string, array{string, string}> identity of the file, and hash of its contents, by path */
    private array $files = [];

    public function __construct()
    {
        foreach (get_included_files() as $file) {
            $identity = LoadedFiles::identity($file);
            if ($identity !== '' && !self::isComposers($file)) { // a read of a FIFO would wait
                $this->files[$file] = [$identity, self::hash(Files::read($file))];
            }
        }
    }

    /** Returns a file of the folder whose contents have changed, or that is missing; null if there is none. */
    public function changed(string $folder = ''): ?string
    {
        foreach ($this->files as $file => [$identity, $hash]) {
            $present = LoadedFiles::identity($file);
            if (!str_starts_with($file, $folder) || $present === $identity) {
                continue;
            }
            $text = Files::read($file);
            if (self::hash($text) !== $hash && ($text !== false || $present === '')) {
                return $file;
            }
        }

        return null;
    }

    /** Returns whether Composer writes the file at each change of its autoloader. {@see FreshCode} reads it again. */
    private static function isComposers(string $file): bool
    {
        $hasComposer = class_exists(ClassLoader::class, false);
        foreach ($hasComposer ? array_keys(ClassLoader::getRegisteredLoaders()) : [] as $vendor) {
            if ($file === "{$vendor}/autoload.php" || str_starts_with($file, "{$vendor}/composer/")) {
                return true;
            }
        }

        return false;
    }

    private static function hash(string|false $text): string
    {
        return hash('xxh128', (string) $text);
    }
}
