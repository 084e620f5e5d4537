<?php

declare(strict_types=1);

namespace Spindle\Postgres\Internal\Protocol;

use Spindle\Internal\Shutdown;

/**
 * Ends persistent connections at the end of an HTTP request. Usually, the destructor of {@see Pipeline} ends a
 * connection, but PHP calls no destructors after a fatal error. Without this class, an open transaction would then hold
 * its locks until the process handles its next request.
 */
final class RequestEnd
{
    /**
     * Object that detects a fatal error: after such an error, PHP does not call the destructor of this object.
     * error_get_last() is not sufficient, because it may return a later error, such as one of a shutdown function.
     */
    private static ?self $probe = null;

    private static bool $areDestructorsCalled = false;

    /** @var \WeakMap<Pipeline, true>|null open persistent connections; null before the first one */
    private static ?\WeakMap $pipelines = null;

    private function __construct() {}

    public function __destruct()
    {
        self::$areDestructorsCalled = true;
    }

    public static function endWithRequest(Pipeline $pipeline): void
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

    /**
     * Ends connections that can't be reused. After a fatal error, ends all connections, because no destructor will do
     * so. {@see Pipeline::end()} keeps the stream of a reusable connection for the next HTTP request.
     */
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
