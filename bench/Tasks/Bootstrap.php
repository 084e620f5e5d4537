<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Composer\Autoload\ClassLoader;

/** What workers load to know the tasks. */
final class Bootstrap
{
    /** @return string|null null where Composer's autoloader knows the benchmarks */
    public static function file(): ?string
    {
        foreach (ClassLoader::getRegisteredLoaders() as $loader) {
            if ($loader->findFile(Work::class) !== false) {
                return null;
            }
        }

        return \dirname(__DIR__) . '/autoload.php';
    }
}
