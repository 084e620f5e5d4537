<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Admin;

/** Help texts of the metrics about pools. One metric, such as `waiting`, can come from pools of different kinds. */
final class PoolHelp
{
    /** Descriptions by the name of the value in {@see \Spindle\Statistics::statistics()}. */
    private const TEXTS = [
        'in_use' => 'Connections that are lent, workers that have a task, or commands that are running.',
        'max' => 'Maximum number of connections, workers or running commands.',
        'idle' => 'Open connections that are not in use.',
        'opening' => 'Connections that are being opened.',
        'waiting' => 'Work that waits: fibers or requests for a connection, tasks, commands, or jobs of a queue.',
        'delayed' => 'Jobs of the whole queue that wait for a delay or a retry.',
        'blocked' => 'Jobs of the whole queue that wait for another job with their exclusive key.',
        'dead' => 'Dead letters of the whole queue: jobs that have failed for good.',
        'agents' => 'Agents that serve the queue.',
        'oldest_waiting_seconds' => 'Time for which the oldest claimable job of a queue has waited, in seconds.',
        'workers' => 'Existing workers of a pool, or the maximum number of concurrent tasks of an agent.',
        'claimed' => 'Jobs that the agent has claimed and that have not ended.',
        'origins' => 'Pools of connections of the HTTP client.',
        'connections' => 'Connections of the HTTP client that are open or being opened.',
        'running' => 'Calls of the HTTP client that have not returned.',
        'wait_seconds' => 'Duration of successful waits for a connection, in seconds.',
        'wait_seconds_total' => 'Total duration of successful waits for a connection, in seconds.',
        'timed_out_total' => 'Waits for a connection that exceeded their time limit.',
        'acquired_total' => 'How many times a connection was lent.',
        'opened_total' => 'Opened connections.',
        'lost_total' => 'Connections that ended unexpectedly.',
        'requests_total' => 'Calls of the HTTP client.',
        'attempts_total' => 'Ended attempts of tasks.',
        'finished_total' => 'Commands that have a result.',
        'failed_total' => 'Failed attempts of tasks, failed commands, or failed calls of the HTTP client.',
        'done_total' => 'Jobs that this agent has completed with a result.',
        'retried_total' => 'Attempts after which a job, command or request is tried again.',
        'postponed_total' => 'Runs of tasks that have asked to run again later.',
        'job_duration_seconds' => 'Duration of ended attempts of jobs, in seconds.',
        'job_wait_seconds' => 'Time in which jobs were claimable before an attempt, in seconds.',
        'dead_total' => 'Jobs that this agent has made dead letters.',
        'cancelled_total' => 'Jobs that were cancelled after this agent had claimed them.',
        'released_total' => 'Jobs that this agent has given back to the queue without an attempt.',
        'stale_total' => 'Outcomes that the engine ignored, because the claim of this agent had ended.',
        'crashed_total' => 'Attempts whose worker or launcher crashed.',
    ];

    private const OTHER = 'A value of statistics that the application registered.';

    public static function of(string $key): string
    {
        return (self::TEXTS[$key] ?? self::OTHER) . ' The label pool is the name of the statistics.';
    }
}
