<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Internal\LoadedFiles;

/** Writes PHP files and loads them within one test. */
trait LoadsSource
{
    use OwnDirectory;

    /** Writes a file and loads it, and records that no later version was loaded. */
    protected function loaded(string $name, string $source): mixed
    {
        $file = $this->file($name, $source);
        LoadedFiles::record();

        return require $file;
    }

    /** Changes a file that is loaded. File times may have a resolution of only ten milliseconds. */
    protected function change(string $name, string $source): void
    {
        $started = microtime(true);
        do {
            $file = $this->file($name, $source);
        } while (microtime(true) < $started + 0.02);
        touch($file, time() - 10);
    }
}
