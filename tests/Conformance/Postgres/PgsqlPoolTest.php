<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

/** The part of the pool's contract that depends on the driver. */
final class PgsqlPoolTest extends PoolContract
{
    use ExtPgsqlDriver;
    use Contract\RefusesToCopyOut;
    use Contract\RunsOnEveryPoolOfADriver {
        changes as private allChanges;
    }

    /**
     * Some are enough: which statements change a session is the same for all drivers, noticing them is not.
     *
     * @return iterable<string, array{list<string>, string, mixed}>
     */
    public static function changes(): iterable
    {
        $kinds = ['a setting', 'a search_path', 'a temporary table', 'a channel', 'a cursor', 'a prepared statement', 'all that is discarded'];
        /** @var iterable<string, array{list<string>, string, mixed}> $all */
        $all = self::allChanges();
        foreach ($all as $kind => $change) {
            if (\in_array($kind, $kinds, true)) {
                yield $kind => $change;
            }
        }
    }
}
