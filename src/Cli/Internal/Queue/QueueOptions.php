<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\UsageException;
use Spindle\Remote\Broker;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Symfony\Component\Console\Input\InputInterface;

/** Reads and validates the options of `spindle queue`. Opens no connection. */
final class QueueOptions
{
    private const DEFAULT_JOBS = 50;

    /** Largest value of --limit. A longer list would block the engine for other clients. */
    private const MAX_JOBS = 10_000;
    private const ALLOWED_LIMIT = 'a number of jobs from 1 to ' . self::MAX_JOBS;

    private const STATUS_BY_NAME = [
        'waiting' => JobStatus::Waiting,
        'running' => JobStatus::Running,
        'delayed' => JobStatus::Delayed,
        'dead' => JobStatus::Dead,
    ];

    private const DEFAULT_STATUSES = [JobStatus::Running, JobStatus::Delayed, JobStatus::Dead];

    /**
     * @param string            $queue    '' for {@see QueueAction::List}
     * @param list<string>|null $ids      ids of dead letters, or of the jobs to show or cancel; null if none is given
     * @param list<JobStatus>   $statuses statuses of the jobs to show
     */
    private function __construct(
        public readonly QueueAction $action,
        public readonly string $queue,
        public readonly Broker $broker,
        public readonly ?array $ids,
        public readonly array $statuses,
        public readonly int $limit,
        public readonly bool $json,
    ) {}

    /** @throws UsageException when an option or argument is invalid, missing, or not for this action */
    public static function of(InputInterface $input): self
    {
        $given = new GivenOptions($input);
        /** @var string $action */
        $action = $input->getArgument('action');
        $action = QueueAction::tryFrom($action)
            ?? throw new UsageException(
                "argument '"
                    . UsageException::withoutPassword($action)
                    . "': give "
                    . implode(', ', array_column(QueueAction::cases(), 'value'))
                    . ', and then, except for list, the name of the queue',
            );
        self::checkOptions($action, $input);

        return new self(
            $action,
            self::queue($action, $input),
            BrokerOptions::broker($given),
            self::ids($action, $given, $input),
            self::statuses($input),
            $given->number('limit', self::ALLOWED_LIMIT, 1, self::MAX_JOBS) ?? self::DEFAULT_JOBS,
            $given->flag('json'),
        );
    }

    private static function queue(QueueAction $action, InputInterface $input): string
    {
        /** @var string|null $queue */
        $queue = $input->getArgument('queue');
        if ($action === QueueAction::List) {
            return $queue === null ? '' : throw new UsageException(
                "argument '" . UsageException::withoutPassword($queue) . "': spindle queue list accepts no queue",
            );
        }

        return $queue === null
            ? throw new UsageException(
                "spindle queue {$action->value}: give the name of a queue; spindle queue list prints the names",
            )
            : BrokerOptions::queueName('the name of the queue', $queue);
    }

    private static function checkOptions(QueueAction $action, InputInterface $input): void
    {
        foreach (QueueAction::cases() as $other) {
            foreach (array_diff($other->options(), $action->options()) as $name) {
                if (!\in_array($input->getOption($name), [null, false, []], true)) {
                    throw new UsageException(
                        "option --{$name}: it is for spindle queue {$other->value}, "
                            . "not for spindle queue {$action->value}",
                    );
                }
            }
        }
        if ($action === QueueAction::Purge && $input->getOption('yes') !== true) {
            throw new UsageException(
                'spindle queue purge: this removes all waiting jobs for good; confirm it with --yes',
            );
        }
    }

    /** @return list<string>|null */
    private static function ids(QueueAction $action, GivenOptions $given, InputInterface $input): ?array
    {
        /** @var list<string> $ids */
        $ids = $input->getArgument('id');
        $tooMany = \array_slice($ids, $action->maxIds());
        if ($tooMany !== []) {
            $number = $action->maxIds() === 0 ? 'no ids' : 'only one id';
            throw new UsageException(
                "argument '"
                    . UsageException::withoutPassword($tooMany[0])
                    . "': spindle queue {$action->value} accepts a queue, but {$number}",
            );
        }
        if ($action === QueueAction::Show && $ids !== [] && self::selectsJobs($input)) {
            throw new UsageException('spindle queue show: give the id of a job, or --status and --limit, but not both');
        }
        if ($action->selectsDeadLetters() && $given->flag('all') === ($ids !== [])) {
            throw new UsageException("spindle queue {$action->value}: give the ids of dead letters, or --all");
        }
        if ($action === QueueAction::Cancel && $ids === []) {
            throw new UsageException('spindle queue cancel: give the ids of jobs');
        }
        foreach ($ids as $id) {
            if (\strlen($id) > Job::MAX_NAME_BYTES) {
                throw new UsageException(
                    "argument '" . UsageException::withoutPassword($id) . "': no job has an id of more than "
                        . Job::MAX_NAME_BYTES . ' characters',
                );
            }
        }

        try {
            return $ids === [] ? null : array_values(array_unique(array_map(Job::storedId(...), $ids)));
        } catch (\ValueError $invalid) {
            throw new UsageException(UsageException::withoutPassword($invalid->getMessage()));
        }
    }

    private static function selectsJobs(InputInterface $input): bool
    {
        return $input->getOption('status') !== [] || $input->getOption('limit') !== null;
    }

    /** @return list<JobStatus> */
    private static function statuses(InputInterface $input): array
    {
        /** @var list<string> $names */
        $names = $input->getOption('status');
        $statuses = array_map(
            static fn(string $name): JobStatus => self::STATUS_BY_NAME[$name] ?? throw UsageException::option(
                '--status',
                $name,
                implode(', ', array_keys(self::STATUS_BY_NAME)),
            ),
            array_values(array_unique($names)),
        );

        return $statuses === [] ? self::DEFAULT_STATUSES : $statuses;
    }
}
