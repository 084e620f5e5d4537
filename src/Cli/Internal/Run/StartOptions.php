<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run;

use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandPoolOptions;
use Spindle\Internal\CommandTransport;
use Spindle\Remote\RemoteCommands;
use Spindle\Remote\RemoteOptions;

final class StartOptions
{
    /** Options that affect only jobs on this machine, and can't be combined with --queue. */
    private const LOCAL = ['nice', 'work-dir', 'term-seq', 'load', 'memfree', 'noswap'];

    /**
     * @param float                 $delay       minimum time between two starts, in seconds
     * @param float                 $gracePeriod seconds between SIGTERM and SIGKILL for a job that is ended
     * @param CommandTransport|null $transport   runs the jobs on other machines; null to run the jobs on this machine
     * @param NoticeLog             $transportLog gets the warnings of $transport
     * @param MachineLimits|null    $machine     checks whether the machine has room for another job; null for no limits
     */
    private function __construct(
        public readonly JobsOption $jobs,
        public readonly TimeLimit $timeLimit,
        public readonly float $delay,
        public readonly float $gracePeriod,
        public readonly JobEnvironment $environment,
        public readonly ?CommandTransport $transport,
        public readonly NoticeLog $transportLog,
        public readonly ?MachineLimits $machine,
    ) {}

    /**
     * @param list<string> $words the command, and the lists of arguments and files
     *
     * @throws UsageException
     */
    public static function of(GivenOptions $given, array $words, InputOptions $input): self
    {
        foreach (self::LOCAL as $name) {
            if ($given->text('queue') !== null && $given->isGiven($name)) {
                throw new UsageException(
                    "option --{$name}: can't be combined with --queue, because it affects only jobs on this machine",
                );
            }
        }
        $log = new NoticeLog();
        $default = $given->text('queue') === null ? null : (string) CommandTransport::DEFAULT_CONCURRENCY;

        return new self(
            JobsOption::parse($given->text('jobs') ?? $default),
            TimeLimit::parse($given->text('timeout')),
            $given->duration('delay') ?? 0.0,
            self::gracePeriod($given),
            JobEnvironment::of($given, $words, $input->strings),
            self::transport($given, $log),
            $log,
            MachineLimits::of($given),
        );
    }

    /** Returns the seconds between SIGTERM and SIGKILL: those of --term-seq, or the pool's default. */
    private static function gracePeriod(GivenOptions $given): float
    {
        $sequence = $given->text('term-seq');
        if ($sequence === null) {
            return (new CommandPoolOptions())->gracePeriod;
        }
        if (preg_match('/^(?:TERM,(\d{1,9}),)?KILL(?:,\d{1,9})?$/D', $sequence, $match) !== 1) {
            throw UsageException::option(
                '--term-seq',
                $sequence,
                'TERM, a number of milliseconds, and KILL, such as TERM,2000,KILL; or KILL alone',
            );
        }

        return (int) ($match[1] ?? 0) / 1000;
    }

    private static function transport(GivenOptions $given, NoticeLog $log): ?CommandTransport
    {
        $queue = $given->text('queue');
        foreach (BrokerOptions::NAMES as $name) {
            if ($queue === null && $given->text($name) !== null) {
                throw new UsageException(
                    "option --{$name}: without a queue, jobs run on this machine; add --queue NAME",
                );
            }
        }

        return $queue === null
            ? null
            : new QueueTransport(new RemoteCommands(
                BrokerOptions::broker($given),
                BrokerOptions::queueName('option --queue', $queue),
                BrokerOptions::keys(),
                options: new RemoteOptions(logger: $log),
            ));
    }
}
