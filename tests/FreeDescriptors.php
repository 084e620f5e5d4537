<?php

declare(strict_types=1);

namespace Spindle\Tests;

/** The file descriptors that this process may still open, up to its limit (RLIMIT_NOFILE). */
final class FreeDescriptors
{
    /** @return list<resource> files that keep all of them in use, until the caller closes or drops these files */
    public static function useAll(): array
    {
        $files = [];
        while (($file = @fopen('/dev/null', 'r')) !== false) {
            $files[] = $file;
        }

        return $files;
    }
}
