<?php

declare(strict_types=1);

namespace Spindle\Internal;

use Revolt\EventLoop;
use Revolt\EventLoop\UnsupportedFeatureException;

/**
 * Handles signals in the event loop within a second. Without an extension such as ext-ev, the loop asks PHP for
 * signals, and then waits in stream_select(). A signal between these two steps does not end the wait. A server without
 * connections could then wait for ever, so a timer ends the wait once a second.
 */
final class SignalWatch
{
    private const INTERVAL_SECONDS = 1.0;

    /**
     * Handles signals from the next turn of the event loop on. Does not keep the loop running.
     *
     * @param array<int, \Closure(string, int): void> $handlers by signal; they receive the callback id and the signal
     *
     * @return list<string> callback ids, to be cancelled by the caller; empty without ext-pcntl
     */
    public static function start(array $handlers): array
    {
        $ids = [];
        try {
            foreach ($handlers as $signal => $handler) {
                $ids[] = EventLoop::unreference(EventLoop::onSignal($signal, $handler));
            }
        } catch (UnsupportedFeatureException) {
            return [];
        }
        $usesSelect = EventLoop::getDriver()->getHandle() === null;
        if ($handlers !== [] && $usesSelect) {
            $ids[] = EventLoop::unreference(EventLoop::repeat(self::INTERVAL_SECONDS, static fn() => null));
        }

        return $ids;
    }
}
