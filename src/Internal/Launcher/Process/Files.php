<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Reads folders of /proc, which may be missing, forbidden, or removed at any time. */
final class Files
{
    /** @return list<string> names in the folder; none when it can't be read */
    public static function in(string $directory): array
    {
        $names = @scandir($directory);

        return $names === false ? [] : $names;
    }
}
