<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Internal\LoadedFiles;

/** Files of PHP that are written and loaded within one test. */
trait LoadsSource
{
    use OwnDirectory;

    /** Loads a file so that it is known to be loaded as it was written. */
    protected function loaded(string $name, string $source): mixed
    {
        $file = $this->file($name, $source);
        LoadedFiles::mark();

        return require $file;
    }

    /** Changes a file that is loaded. The clock of file times may stand still for ten milliseconds. */
    protected function change(string $name, string $source): void
    {
        $started = microtime(true);
        do {
            $file = $this->file($name, $source);
        } while (microtime(true) < $started + 0.02);
        touch($file, time() - 10);
    }
}
