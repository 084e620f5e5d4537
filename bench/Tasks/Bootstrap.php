<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Composer\Autoload\ClassLoader;
use Spindle\Bench\Support\Checkout;

/** What workers load to know the tasks. */
final class Bootstrap
{
    /** @return string|null null where Composer's autoloader knows the benchmarks, and no other checkout has its own */
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
