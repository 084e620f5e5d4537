<?php

declare(strict_types=1);

namespace Spindle\Internal\Launcher\Process;

/** Looks into /proc, where a folder may be missing, forbidden, or gone a moment later. */
final class Files
{
    /** @return list<string> the names in the folder; none where it can't be read */
    public static function in(string $directory): array
    {
        $names = @scandir($directory);

        return $names === false ? [] : $names;
    }
}
