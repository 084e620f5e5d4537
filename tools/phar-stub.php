#!/usr/bin/env php
<?php

declare(strict_types=1);

// The beginning of spindle.phar, which tools/build-phar completes. It unpacks the program into a private folder, unless
// an earlier start has done so, and runs it there. The program can't run inside the file: launchers have no Phar
// extension, and forks would share the offset of the open file.

// Otherwise a file of the program could become standard input, output or error: see bin/spindle.
$spindleDescriptors = [];
for ($descriptor = 0; $descriptor <= 2; ++$descriptor) {
    if (!file_exists("/dev/fd/{$descriptor}")) {
        $spindleDescriptors[] = fopen('/dev/null', 'r+');
    }
}
unset($descriptor);

/** The folder of the unpacked program. */
final class SpindlePhar
{
    /** Names the folder, and differs for each content of this file. */
    private const CONTENT = '@content@';

    /** Name of this file in URLs, whatever its path is. */
    private const ALIAS = 'spindle.phar';

    /** File with the size and the path of each other file; it is written last. */
    private const LIST = '.files';

    /** File that processes lock while they use the folder. */
    private const LOCK = '.lock';

    private const OTHERS_WRITE = 0022;
    private const OTHERS_ACCESS = 0077;
    private const STICKY = 01000;

    /** @var resource|null prevents the removal of the folder as long as this process and its forks run */
    public static $lock;

    public static function unpack(): string
    {
        $failures = [];
        foreach (self::parents() as $parent) {
            // Otherwise root, for which sudo may keep HOME, would leave its folders in the home of a user.
            if (!self::isSafe(self::existing($parent))) {
                $failures[] = "{$parent} can be changed by another user";
                continue;
            }
            $folder = self::create("{$parent}/" . self::CONTENT);
            $failure = $folder === null ? 'can not be created' : self::unpackInto($folder);
            if ($failure === null) {
                return (string) $folder;
            }
            $failures[] = "{$parent} {$failure}";
        }
        fwrite(
            STDERR,
            'spindle: this file could not be unpacked: ' . implode('; ', $failures) . '. Set XDG_CACHE_HOME to a folder'
            . " that only this user can write\n",
        );
        exit(255);
    }

    /** @return list<string> folders for the programs of all versions, in the order of preference */
    private static function parents(): array
    {
        $name = 'spindle-' . self::user(); // several users can have the same XDG_CACHE_HOME
        $parents = [];
        foreach ([(string) getenv('XDG_CACHE_HOME'), getenv('HOME') . '/.cache'] as $cache) {
            if ($cache !== '/.cache' && strncmp($cache, '/', 1) === 0) {
                $parents[] = "{$cache}/{$name}";
            }
        }
        $parents[] = sys_get_temp_dir() . "/{$name}";

        return $parents;
    }

    /** @return string|null path without links, which another user could change later; null on failure */
    private static function create(string $folder): ?string
    {
        $exists = @is_dir($folder) || @mkdir($folder, 0700, true) || is_dir($folder);
        $path = $exists ? realpath($folder) : false;

        return $path === false ? null : $path;
    }

    /** @return string|null why the folder can not be used; null on success */
    private static function unpackInto(string $folder): ?string
    {
        if (!self::isPrivate($folder)) {
            return 'can be changed by another user';
        }
        for ($attempt = 0; $attempt < 3; ++$attempt) {
            // Close-on-exec, so that no command inherits the descriptor.
            $path = "{$folder}/" . self::LOCK;
            $lock = @fopen($path, 'ce');
            if ($lock === false && is_file($path)) {
                $lock = @fopen($path, 're'); // on a read-only file system
            }
            if ($lock !== false && flock($lock, LOCK_SH) && self::isComplete($folder)) {
                self::$lock = $lock;

                return null;
            }
            $failure = self::write($folder);
            if ($failure !== null) {
                return $failure;
            }
            self::removeUnused(dirname($folder));
        }

        return 'is changed by another process';
    }

    /** Returns the path, without links, of the folder or of the first one above it that exists. */
    private static function existing(string $folder): string
    {
        while (!file_exists($folder)) {
            $folder = dirname($folder);
        }

        return (string) realpath($folder);
    }

    /** Returns whether the folder is safe, and only this user can read it. */
    private static function isPrivate(string $folder): bool
    {
        return self::isSafe($folder)
            && fileowner($folder) === self::user()
            && (fileperms($folder) & self::OTHERS_ACCESS) === 0;
    }

    /** Returns whether only this user and root can change the folder or replace one above it. A link is not safe. */
    private static function isSafe(string $folder): bool
    {
        // In a user namespace, root outside of it has another number.
        $trusted = [0, self::user(), fileowner('/')];
        for ($path = $folder; $path !== '/'; $path = dirname($path)) {
            $status = @lstat($path);
            $mode = $status['mode'] ?? self::OTHERS_WRITE;
            $isSafe = ($mode & self::OTHERS_WRITE) === 0 || ($mode & self::STICKY) !== 0;
            if (!$isSafe || !in_array($status['uid'] ?? null, $trusted, true)) {
                return false;
            }
        }

        return true;
    }

    private static function isComplete(string $folder): bool
    {
        $list = @fopen("{$folder}/" . self::LIST, 'r');
        while ($list !== false && ($line = fgets($list)) !== false) {
            [$size, $path] = explode(' ', rtrim($line, "\n"), 2);
            if (@filesize("{$folder}/{$path}") !== (int) $size) {
                return false;
            }
        }

        return $list !== false;
    }

    /** @return string|null why it failed */
    private static function write(string $folder): ?string
    {
        if (!extension_loaded('phar') || !extension_loaded('zlib')) {
            return 'does not have it yet, and unpacking it needs the PHP extensions phar and zlib';
        }
        Phar::mapPhar(self::ALIAS);
        $root = 'phar://' . self::ALIAS . '/';
        $list = '';
        /** @var SplFileInfo $file */
        foreach (new RecursiveIteratorIterator(new RecursiveDirectoryIterator($root)) as $file) {
            $path = ltrim(substr($file->getPathname(), strlen($root)), '/');
            $bytes = @file_get_contents($file->getPathname());
            if ($bytes === false) {
                return "can not get {$path}, which needs a temporary file in " . sys_get_temp_dir() . ': '
                    . (error_get_last()['message'] ?? 'it could not be written');
            }
            if (!self::put("{$folder}/{$path}", $bytes)) {
                return "has no place for {$path}: " . (error_get_last()['message'] ?? 'the disk is full');
            }
            $list .= strlen($bytes) . " {$path}\n";
        }

        return self::put("{$folder}/" . self::LIST, $list) ? null : 'has no place for the list of files';
    }

    /** Writes a file atomically, because another process may do the same. */
    private static function put(string $path, string $bytes): bool
    {
        $folder = dirname($path);
        $temporary = "{$folder}/." . bin2hex(random_bytes(8));

        if (
            self::create($folder) !== null
            && @file_put_contents($temporary, $bytes) === strlen($bytes)
            && rename($temporary, $path)
        ) {
            return true;
        }
        is_file($temporary) && unlink($temporary);

        return false;
    }

    /** Removes the programs of other versions that no process uses. */
    private static function removeUnused(string $parent): void
    {
        foreach (array_diff((array) scandir($parent), ['.', '..', self::CONTENT]) as $name) {
            $folder = "{$parent}/{$name}";
            $lock = self::isPrivate($folder) ? @fopen("{$folder}/" . self::LOCK, 'r+e') : false;
            if ($lock === false || !flock($lock, LOCK_EX | LOCK_NB)) {
                continue;
            }
            @unlink("{$folder}/" . self::LIST);
            $entries = new RecursiveIteratorIterator(
                new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS),
                RecursiveIteratorIterator::CHILD_FIRST,
            );
            /** @var SplFileInfo $entry */
            foreach ($entries as $entry) {
                $path = $entry->getPathname();
                if ($path !== "{$folder}/" . self::LOCK) {
                    $entry->isDir() && !$entry->isLink() ? @rmdir($path) : @unlink($path);
                }
            }
            // The last file: another process that waits for the lock unpacks its program after this removal.
            @unlink("{$folder}/" . self::LOCK);
            @rmdir($folder);
        }
    }

    /** Returns the effective user. The extension posix may be missing. */
    private static function user(): int
    {
        return (int) fileowner('/proc/self');
    }
}

require SpindlePhar::unpack() . '/bin/spindle';
