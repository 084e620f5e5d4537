<?php

declare(strict_types=1);

namespace Spindle\Internal;

/** Passes the report of a task to a closure of the application. */
final class ReportDelivery
{
    /**
     * Decodes and delivers a report. If decoding fails, drops the report, and logs the reason with error_log().
     *
     * @param \Closure(): mixed      $decode
     * @param \Closure(mixed): mixed $onReport
     */
    public static function deliver(\Closure $decode, \Closure $onReport): void
    {
        IsolatedCall::call(static function () use ($decode, $onReport): void {
            try {
                $report = $decode();
            } catch (\Throwable $unreadable) {
                error_log("Spindle: a report was dropped. {$unreadable->getMessage()}");

                return;
            }
            $onReport($report);
        });
    }
}
