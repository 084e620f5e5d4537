<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Signals whose handlers end this process. */
final class Signals
{
    private function __construct() {}

    /** From now on one that asks this process to end has it exit, so that whatever was started ends with the objects that hold it. */
    public static function exitByThem(): void
    {
        if (!\extension_loaded('pcntl')) {
            return;
        }
        pcntl_async_signals(true);
        foreach ([\SIGINT, \SIGTERM, \SIGHUP] as $signal) {
            pcntl_signal($signal, static fn() => exit(128 + $signal));
        }
    }

    /**
     * Makes something without being interrupted. A signal's handler that ends the process comes after it, so that what was
     * made ends with it: the destructor of an object is not called whose constructor did not come to its end.
     *
     * @template T
     *
     * @param \Closure(): T $make
     *
     * @return T
     */
    public static function hold(\Closure $make): mixed
    {
        if (!\extension_loaded('pcntl')) {
            return $make();
        }
        $async = pcntl_async_signals(false);
        try {
            $made = $make();
        } finally {
            pcntl_async_signals($async);
        }
        if ($async) {
            pcntl_signal_dispatch();
        }

        return $made;
    }
}
