<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Queue;

use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\Plural;
use Spindle\Cli\Internal\UsageException;
use Spindle\Remote\Job;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle queue`: lists queues, shows the jobs of a queue, and cancels, retries or deletes them. */
#[AsCommand('queue', 'Lists queues; shows, cancels, retries and deletes the jobs of a queue')]
final class QueueCommand extends Command
{
    private const HELP = <<<'HELP'
        Lists queues, shows the jobs of a queue, and cancels, retries or deletes them:

          <info>spindle queue list</info>                             list all queues
          <info>spindle queue show thumbnails</info>                  count and list jobs
          <info>spindle queue show thumbnails --status waiting --limit 10</info>
          <info>spindle queue show thumbnails --json</info>           print JSON
          <info>spindle queue show thumbnails 3f9c-1</info>           show one job in full
          <info>spindle queue cancel thumbnails order-7 3f9c-1</info> cancel unfinished jobs
          <info>spindle queue retry thumbnails 3f9c-1 3f9c-8</info>   run dead letters again
          <info>spindle queue retry thumbnails --all</info>
          <info>spindle queue delete thumbnails --all</info>          remove dead letters
          <info>spindle queue purge thumbnails --yes</info>           remove waiting jobs

        The queues are stored in the engine: a Redis or Valkey server. Its address
        comes from --broker or --broker-file, otherwise from SPINDLE_BROKER. Never
        write a password in a command line. No signing key is needed, because the
        contents of jobs are not read. An agent is a process of spindle work.

        <comment>Output of list</comment>
          A line for each queue that has or had a job or an agent, with the numbers
          of its jobs and of the agents that serve it. The engine is asked for its
          keys in short requests, so its other clients do not wait. Keys that can't
          be read, or that another version of Spindle has created, are reported on
          standard error.

        <comment>Output of show</comment>
          waiting  jobs that an agent can claim, and how long the oldest has waited
          running  jobs that an agent has claimed; "owner" is the name of this agent
          delayed  jobs that wait until their delay is over, or for a retry. If a task
                   has asked to run again later, "postponed_since" is the time when it
                   first asked
          blocked  jobs that wait while another job with the same exclusive key runs
          dead     dead letters: jobs that failed for good
          After the counts, running, delayed and dead jobs are listed, at most --limit
          of each. --status selects the lists: waiting, running, delayed or dead.
          Waiting jobs begin with the oldest, dead letters with the newest. Times are
          in UTC, by the engine's clock. With an id, one job is shown in full: a dead
          letter with the trace of its exception.

        <comment>Effect of cancel</comment>
          A job that no agent has claimed is removed. The agent of a running job is
          asked to end it; if the job ends by itself first, it is done. A cancelled
          job never runs again, and its status is "cancelled" for about an hour.
          During this hour, no new job can have its id. A second cancellation does no
          harm.

        <comment>Exit status</comment>
          0      done
          1      retry, delete: some of the ids are not ids of dead letters
                 cancel: some of the ids are not ids of unfinished jobs
                 show: the job is unknown. list: the keys of a queue can't be read
          253    the engine refuses the request, or has settings that could lose jobs
          254    the engine can't be reached
          255    invalid options, or an invalid --broker-file
        HELP;

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        BrokerOptions::addOptions($this->setHelp(self::HELP)
            ->addUsage('show thumbnails')
            ->addArgument('action', InputArgument::REQUIRED, 'list, show, cancel, retry, delete or purge')
            ->addArgument('queue', InputArgument::OPTIONAL, 'The name of the queue, except for list')
            ->addArgument(
                'id',
                InputArgument::IS_ARRAY,
                "cancel: The ids of unfinished jobs\nretry, delete: The ids of dead letters\nshow: The id of a job",
            ))
            ->addOption(
                'status',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "show: List waiting, running, delayed or dead\njobs [default: all of these but waiting]\n",
            )
            ->addOption('limit', null, $value, "show: List at most N jobs of each status\n[default: 50]")
            ->addOption('all', null, $flag, 'retry, delete: Select all dead letters')
            ->addOption('yes', null, $flag, 'purge: Confirm the removal')
            ->addOption('json', null, $flag, 'Print one line of JSON');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = QueueOptions::of($input);
        $manager = new QueueManager($options->broker, $options->queue);

        return match ($options->action) {
            QueueAction::List => self::printList($manager->list(), $options, $output),
            QueueAction::Show => isset($options->ids[0])
                ? self::showJob($manager->job($options->ids[0]), $options, $output)
                : self::show($manager->report($options->statuses, $options->limit), $options, $output),
            QueueAction::Cancel => self::printCancelled($manager->cancel($options->ids ?? []), $options, $output),
            QueueAction::Retry => self::printCount($manager->retry($options->ids), 'retried', $options, $output),
            QueueAction::Delete => self::printCount($manager->delete($options->ids), 'deleted', $options, $output),
            QueueAction::Purge => self::printCount($manager->purge(), 'purged', $options, $output),
        };
    }

    private static function printList(QueueListReport $report, QueueOptions $options, OutputInterface $output): int
    {
        $output->writeln($options->json ? self::json($report->data()) : $report->lines(), OutputInterface::OUTPUT_RAW);
        $errors = $report->errors();
        foreach ($errors as $error) {
            fwrite(\STDERR, "{$error}\n");
        }

        return ExitStatus::ofFailures(min(1, \count($errors)));
    }

    private static function show(QueueReport $report, QueueOptions $options, OutputInterface $output): int
    {
        if ($options->json) {
            $output->writeln(self::json($report->data()), OutputInterface::OUTPUT_RAW);

            return ExitStatus::OK;
        }
        foreach ($report->sections() as [$title, $lines]) {
            $output->writeln("<comment>{$title}</comment>");
            $output->writeln($lines, OutputInterface::OUTPUT_RAW);
        }

        return ExitStatus::OK;
    }

    private static function showJob(?QueuedJobReport $job, QueueOptions $options, OutputInterface $output): int
    {
        if ($job === null) {
            $id = UsageException::withoutPassword(Job::givenId($options->ids[0] ?? ''));
            fwrite(\STDERR, "spindle: the queue {$options->queue} has neither the job {$id} nor its outcome\n");

            return ExitStatus::ofFailures(1);
        }
        $output->writeln($options->json ? self::json($job->data()) : $job->lines(), OutputInterface::OUTPUT_RAW);

        return ExitStatus::OK;
    }

    /** @param array{int, list<string>, int} $result as from {@see QueueManager::cancel()} */
    private static function printCancelled(array $result, QueueOptions $options, OutputInterface $output): int
    {
        [$jobs, $missing, $running] = $result;
        $note = match ($running) {
            0 => '',
            1 => '; 1 was running, and its agent ends it',
            default => "; {$running} were running, and their agents end them",
        };
        $numbers = ['cancelled' => $jobs, 'running' => $running];
        self::printNumbers(Plural::of($jobs, 'job') . " cancelled{$note}", $numbers, $options, $output);

        return self::reportMissing($missing, 'unfinished jobs', $options);
    }

    /** @param array{int, list<string>} $result number of changed jobs, and ids that are not dead letters */
    private static function printCount(array $result, string $done, QueueOptions $options, OutputInterface $output): int
    {
        [$jobs, $missing] = $result;
        self::printNumbers(Plural::of($jobs, 'job') . " {$done}", [$done => $jobs], $options, $output);

        return self::reportMissing($missing, 'dead letters', $options);
    }

    /** @param array<string, int> $numbers for --json */
    private static function printNumbers(
        string $text,
        array $numbers,
        QueueOptions $options,
        OutputInterface $output,
    ): void {
        $json = self::json(['queue' => $options->queue, ...$numbers]);
        $output->writeln($options->json ? $json : $text, OutputInterface::OUTPUT_RAW);
    }

    /** @param list<string> $missing */
    private static function reportMissing(array $missing, string $expected, QueueOptions $options): int
    {
        if ($missing === []) {
            return ExitStatus::OK;
        }
        $ids = UsageException::withoutPassword(implode(' ', array_map(Job::givenId(...), $missing)));
        fwrite(\STDERR, "spindle: not among the {$expected} of the queue {$options->queue}: {$ids}\n");

        return ExitStatus::ofFailures(1);
    }

    /** @param array<string, mixed> $data */
    private static function json(array $data): string
    {
        return json_encode($data, \JSON_THROW_ON_ERROR | \JSON_INVALID_UTF8_SUBSTITUTE | \JSON_UNESCAPED_SLASHES);
    }
}
