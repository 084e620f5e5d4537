<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** Handlers for signals that end this process. */
final class Signals
{
    /** Makes signals call exit(), so that destructors end everything that was started. */
    public static function exitOnSignal(): void
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
     * Creates an object without interruption by signals.
     *
     * A handler that ends the process runs only afterwards, because the destructor of a half-constructed object is not
     * called.
     *
     * @template T
     *
     * @param \Closure(): T $make
     *
     * @return T
     */
    public static function withoutInterruption(\Closure $make): mixed
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
