<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Internal\LoadedFiles;

/** Files of PHP that are written and loaded within one test. */
trait LoadsSource
{
    use OwnDirectory;

    /** Loads a file so late that it is known to be loaded as it was written. */
    protected function loaded(string $name, string $source): mixed
    {
        $file = $this->file($name, $source);
        $written = microtime(true);
        while (microtime(true) < $written + 0.015) { // three ticks of the clock that files have their times from
            usleep(1_000);
        }
        LoadedFiles::mark();

        return require $file;
    }
}
