<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

/** Tests the part of the pool's contract that depends on the driver. */
final class PgsqlPoolTest extends PoolContract
{
    use ExtPgsqlDriver;
    use Contract\RefusesToCopyOut;
    use Contract\RunsOnEveryPoolOfADriver {
        changes as private allChanges;
    }

    /**
     * Returns some of the changes. Which statements change a session does not depend on the driver, noticing them does.
     *
     * @return iterable<string, array{list<string>, string, mixed}>
     */
    public static function changes(): iterable
    {
        $kinds = [
            'a setting',
            'a search_path',
            'a temporary table',
            'a channel',
            'a cursor',
            'a prepared statement',
            'all that is discarded',
        ];
        /** @var iterable<string, array{list<string>, string, mixed}> $all */
        $all = self::allChanges();
        foreach ($all as $kind => $change) {
            if (\in_array($kind, $kinds, true)) {
                yield $kind => $change;
            }
        }
    }
}
