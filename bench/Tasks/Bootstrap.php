<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Composer\Autoload\ClassLoader;
use Spindle\Bench\Support\Checkout;

/** The file that workers load to find the tasks. */
final class Bootstrap
{
    /** @return string|null null when Composer's autoloader finds the benchmarks, and no other checkout is loaded */
    public static function file(): ?string
    {
        $loaders = getenv(Checkout::VARIABLE) === false ? ClassLoader::getRegisteredLoaders() : [];
        foreach ($loaders as $loader) {
            if ($loader->findFile(Work::class) !== false) {
                return null;
            }
        }

        return \dirname(__DIR__) . '/autoload.php';
    }
}
