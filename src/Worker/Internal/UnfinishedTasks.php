<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\FatalError;
use Spindle\Internal\Shutdown;

/** Reports at the script's end how many submitted tasks have no outcome. See docs/decisions/0017-unfinished-tasks.md */
final class UnfinishedTasks
{
    /** @var \WeakMap<Submissions, int>|null id of the process that created each instance */
    private static ?\WeakMap $watched = null;

    public static function watch(Submissions $submissions): void
    {
        if (self::$watched === null) {
            self::$watched = new \WeakMap();
            // The report comes after the application's shutdown functions, because they may still await futures.
            Shutdown::afterApplication(self::report(...));
        }
        self::$watched[$submissions] = (int) getmypid();
    }

    private static function report(): void
    {
        $tasks = 0;
        foreach (self::$watched ?? [] as $submissions => $process) {
            $tasks += $process === getmypid() ? $submissions->lostCount() : 0;
        }
        // After a fatal error, this report would distract from that error.
        if ($tasks === 0 || FatalError::last() !== null) {
            return;
        }
        $what = $tasks === 1 ? 'a submitted task had its result' : "{$tasks} submitted tasks had their results";
        error_log(
            "Spindle: the script ended before {$what}. Await the futures, or call close() on the pool to wait for its"
            . ' tasks. kill() ends tasks without this message',
        );
    }
}
