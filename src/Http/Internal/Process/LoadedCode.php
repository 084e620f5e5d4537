<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Composer\Autoload\ClassLoader;
use Spindle\Internal\Launcher\HelperCode;
use Spindle\Internal\Launcher\Process\Files;
use Spindle\Internal\LoadedFiles;

/** All files of Spindle, and those that the supervisor has loaded. Forks inherit loaded code, even of changed files. */
final class LoadedCode
{
    /** @var array<string, array{string, string}> identity of the file, and hash of its contents, by path */
    private array $files = [];

    public function __construct()
    {
        $this->record(\function_exists('scandir') ? HelperCode::filesOf(\dirname(__DIR__, 3)) : []);
        $this->recordLoaded();
    }

    public function recordLoaded(): void
    {
        $this->record(get_included_files());
    }

    /** Returns a loaded file, or any file of the folder, that is missing or has other contents; null without one. */
    public function changed(string $folder = ''): ?string
    {
        foreach ($folder === '' ? get_included_files() : array_keys($this->files) as $file) {
            [$identity, $hash] = $this->files[$file] ?? ['', ''];
            $present = $identity === '' || !str_starts_with($file, $folder) ? $identity : LoadedFiles::identity($file);
            if ($present === $identity) {
                continue;
            }
            $text = Files::read($file);
            if (self::hash($text) !== $hash && ($text !== false || $present === '')) {
                return $file;
            }
        }

        return null;
    }

    /** @param array<string> $files */
    private function record(array $files): void
    {
        foreach ($files as $file) {
            $identity = isset($this->files[$file]) ? '' : LoadedFiles::identity($file);
            if ($identity !== '' && !self::isComposers($file)) { // a read of a FIFO would wait
                $this->files[$file] = [$identity, self::hash(Files::read($file))];
            }
        }
    }

    /** Returns whether Composer writes the file at each change of its autoloader. {@see FreshCode} reads it again. */
    private static function isComposers(string $file): bool
    {
        $hasComposer = class_exists(ClassLoader::class, false);
        foreach ($hasComposer ? array_keys(ClassLoader::getRegisteredLoaders()) : [] as $vendor) {
            if ($file === "{$vendor}/autoload.php" || \dirname($file) === "{$vendor}/composer") {
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
