<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

/** Reports, when the script ends, how many submitted tasks are lost. See docs/decisions/0017-unfinished-tasks.md */
final class UnfinishedTasks
{
    /** Errors that end the script. After one of them there is no report, which would distract from the error. */
    private const FATAL = \E_ERROR | \E_PARSE | \E_CORE_ERROR | \E_COMPILE_ERROR | \E_USER_ERROR | \E_RECOVERABLE_ERROR;

    /** @var \WeakMap<Submissions, int>|null process that created each instance */
    private static ?\WeakMap $watched = null;

    private function __construct() {}

    public static function watch(Submissions $submissions): void
    {
        if (self::$watched === null) {
            self::$watched = new \WeakMap();
            // Other shutdown functions may still await futures. So the report is made after all that exist by then.
            register_shutdown_function(static fn() => register_shutdown_function(self::report(...)));
        }
        self::$watched[$submissions] = (int) getmypid();
    }

    private static function report(): void
    {
        $tasks = 0;
        foreach (self::$watched ?? [] as $submissions => $process) {
            $tasks += $process === getmypid() ? $submissions->lostCount() : 0;
        }
        if ($tasks === 0 || ((error_get_last()['type'] ?? 0) & self::FATAL) !== 0) {
            return;
        }
        $what = $tasks === 1 ? 'a submitted task had its result' : "{$tasks} submitted tasks had their results";
        error_log(
            "Spindle: the script ended before {$what}. Await the futures, or call close() on the pool to wait for its"
            . ' tasks. kill() ends tasks without this message',
        );
    }
}
