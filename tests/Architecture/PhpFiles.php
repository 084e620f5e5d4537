<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

/** Finds the PHP files of a folder. */
final class PhpFiles
{
    /** @return list<string> paths relative to the folder, sorted */
    public static function in(string $folder): array
    {
        $paths = [];
        $tree = new \RecursiveDirectoryIterator($folder, \FilesystemIterator::SKIP_DOTS);
        foreach (new \RecursiveIteratorIterator($tree) as $file) {
            \assert($file instanceof \SplFileInfo);
            if ($file->getExtension() === 'php') {
                $paths[] = substr($file->getPathname(), \strlen($folder) + 1);
            }
        }
        sort($paths);

        return $paths;
    }
}
