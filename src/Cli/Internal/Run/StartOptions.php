<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\UsageException;
use Spindle\Internal\CommandCarrier;
use Spindle\Remote\RemoteCommands;

/** When and where jobs run. */
final class StartOptions
{
    /**
     * @param float               $delay   minimum time between two starts, in seconds
     * @param CommandCarrier|null $carrier runs the jobs on other machines; null to run them here
     */
    private function __construct(
        public readonly JobsOption $jobs,
        public readonly TimeLimit $timeLimit,
        public readonly float $delay,
        public readonly ?CommandCarrier $carrier,
    ) {}

    /** @throws UsageException */
    public static function of(GivenOptions $given): self
    {
        $default = $given->text('queue') === null ? null : (string) CommandCarrier::DEFAULT_CONCURRENCY;

        return new self(
            JobsOption::parse($given->text('jobs') ?? $default),
            TimeLimit::parse($given->text('timeout')),
            $given->duration('delay') ?? 0.0,
            self::carrier($given),
        );
    }

    private static function carrier(GivenOptions $given): ?CommandCarrier
    {
        $queue = $given->text('queue');
        foreach (['broker', 'broker-file'] as $name) {
            if ($queue === null && $given->text($name) !== null) {
                throw new UsageException(
                    "option --{$name}: without a queue, jobs run on this machine; add --queue NAME",
                );
            }
        }

        return $queue === null
            ? null
            : new RemoteCommands(
                GivenQueue::broker($given),
                GivenQueue::name('option --queue', $queue),
                GivenQueue::keys(),
            );
    }
}
