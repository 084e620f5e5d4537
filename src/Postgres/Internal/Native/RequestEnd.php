<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Native;

/**
 * Ends persistent connections at the end of a request. After a fatal error PHP calls no destructors, so a transaction
 * would stay open, and hold its locks, until the process handles its next request.
 */
final class RequestEnd
{
    private const FATAL_ERRORS = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR
        | \E_RECOVERABLE_ERROR;

    /** @var \WeakMap<Pipeline, true>|null open persistent connections; null before the first one */
    private static ?\WeakMap $pipelines = null;

    public static function endAtLatest(Pipeline $pipeline): void
    {
        if (self::$pipelines === null) {
            /** @var \WeakMap<Pipeline, true> $pipelines */
            $pipelines = new \WeakMap();
            self::$pipelines = $pipelines;
            // A function that is registered by a shutdown function runs after those of the application.
            register_shutdown_function(static fn() => register_shutdown_function(self::endAll(...)));
        }
        self::$pipelines[$pipeline] = true;
    }

    /** Ends connections that can't be reused. After a fatal error, ends all, which leaves the others for reuse. */
    private static function endAll(): void
    {
        $isFatal = ((error_get_last()['type'] ?? 0) & self::FATAL_ERRORS) !== 0;
        foreach (self::$pipelines ?? [] as $pipeline => $_) {
            if ($isFatal || !$pipeline->isReusable()) {
                $pipeline->end(null);
            }
        }
    }
}
