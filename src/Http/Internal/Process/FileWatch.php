<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** Sees that PHP files of a folder have changed, been added or removed; below vendor/ and dot folders it does not look. */
final class FileWatch
{
    /** Nanoseconds between two looks. */
    public const INTERVAL = 500_000_000;

    /** Files that are named. */
    private const NAMED = 5;

    /** @var array<string, string> what tells one version from another, by path below the folder */
    private array $files;

    public function __construct(private readonly string $folder)
    {
        $this->files = $this->look();
    }

    /** @return list<string> what has changed since the last call: paths below the folder, and how many more there are */
    public function changes(): array
    {
        $files = $this->look();
        $changed = array_keys(array_diff_assoc($files, $this->files) + array_diff_key($this->files, $files));
        $this->files = $files;
        $more = \count($changed) - self::NAMED;

        return $more > 0 ? [...\array_slice($changed, 0, self::NAMED), "{$more} more"] : $changed;
    }

    /** @return array<string, string> */
    private function look(): array
    {
        clearstatcache();
        $files = [];
        try {
            $folder = new \RecursiveDirectoryIterator($this->folder, \FilesystemIterator::SKIP_DOTS);
            $watched = new \RecursiveCallbackFilterIterator($folder, static fn(\SplFileInfo $file): bool => !str_starts_with($file->getFilename(), '.') && $file->getFilename() !== 'vendor');
            foreach (new \RecursiveIteratorIterator($watched, \RecursiveIteratorIterator::LEAVES_ONLY, \RecursiveIteratorIterator::CATCH_GET_CHILD) as $file) {
                if ($file instanceof \SplFileInfo && $file->getExtension() === 'php') {
                    $files[substr($file->getPathname(), \strlen($this->folder) + 1)] = self::version($file);
                }
            }
        } catch (\UnexpectedValueException) {
            // The folder is gone, or may not be read: for the time being it has no files.
        }

        return $files;
    }

    private static function version(\SplFileInfo $file): string
    {
        try {
            return "{$file->getMTime()} {$file->getSize()} {$file->getInode()}";
        } catch (\RuntimeException) {
            return ''; // removed meanwhile
        }
    }
}
