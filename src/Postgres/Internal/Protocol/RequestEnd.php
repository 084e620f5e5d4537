<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\Shutdown;

/**
 * Ends persistent connections at the end of an HTTP request. After a fatal error, PHP calls no destructors. Without
 * this class, an open transaction would hold its locks until the process handles its next request.
 */
final class RequestEnd
{
    /** Detects a fatal error, after which PHP skips its destructor. error_get_last() would show only the last error. */
    private static ?self $probe = null;

    private static bool $areDestructorsCalled = false;

    /** @var \WeakMap<Pipeline, true>|null open persistent connections; null before the first one */
    private static ?\WeakMap $pipelines = null;

    private function __construct() {}

    public function __destruct()
    {
        self::$areDestructorsCalled = true;
    }

    public static function endAtLatest(Pipeline $pipeline): void
    {
        if (self::$probe === null) {
            self::$probe = new self();
            Shutdown::afterApplication(self::endAll(...));
        }
        /** @var \WeakMap<Pipeline, true> $pipelines */
        $pipelines = self::$pipelines ?? new \WeakMap();
        $pipelines[$pipeline] = true;
        self::$pipelines = $pipelines;
    }

    /** Ends connections that can't be reused. After a fatal error, ends all, but keeps the streams of reusable ones. */
    private static function endAll(): void
    {
        self::$probe = null;
        foreach (self::$pipelines ?? [] as $pipeline => $_) {
            if (!self::$areDestructorsCalled || !$pipeline->isReusable()) {
                $pipeline->end(null);
            }
        }
    }
}
