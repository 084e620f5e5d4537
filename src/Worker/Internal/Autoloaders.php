<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Composer\Autoload\ClassLoader;

/** The Composer autoloaders of this process at the time of construction. Workers that start at that time load them. */
final class Autoloaders
{
    /** @var array<string, ClassLoader> */
    private array $loaders;

    /** @var list<string> */
    private readonly array $files;

    public function __construct()
    {
        $this->loaders = self::registered();
        $this->files = self::files();
    }

    /** @return list<string> files that load the autoloaders of this process */
    public static function files(): array
    {
        $files = array_map(
            static fn(string $vendor): string => "{$vendor}/autoload.php",
            array_keys(self::registered()),
        );

        return array_values(array_filter($files, is_file(...)));
    }

    /**
     * Returns whether a worker would load other files now. The pool calls this method for each submission. While no
     * other autoloader is registered, PHP compares an array with itself, which takes the same time for any size.
     */
    public function haveChanged(): bool
    {
        $loaders = self::registered();
        if ($loaders === $this->loaders) {
            return false;
        }
        $this->loaders = $loaders;

        return self::files() !== $this->files;
    }

    /** @return array<string, ClassLoader> by vendor directory */
    private static function registered(): array
    {
        return class_exists(ClassLoader::class, false) ? ClassLoader::getRegisteredLoaders() : [];
    }
}
