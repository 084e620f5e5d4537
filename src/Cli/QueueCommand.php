<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\ExitStatus;
use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\QueueAction;
use Spindle\Cli\Internal\QueueManager;
use Spindle\Cli\Internal\QueueOptions;
use Spindle\Cli\Internal\QueueReport;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle queue`: shows the jobs of a queue, and retries or deletes them. */
final class QueueCommand extends Command
{
    private const HELP = <<<'HELP'
        Shows what is in a queue, and does something with it:

          <info>spindle queue show thumbnails</info>                  how much waits, runs, is dead
          <info>spindle queue show thumbnails --status waiting --limit 10</info>
          <info>spindle queue show thumbnails --json</info>           for a program
          <info>spindle queue retry thumbnails 3f9c-1 3f9c-8</info>   dead letters are jobs again
          <info>spindle queue retry thumbnails --all</info>
          <info>spindle queue delete thumbnails --all</info>          dead letters are gone
          <info>spindle queue purge thumbnails --yes</info>           what waits is gone

        The broker's address is that of --broker, else of --broker-file, else of
        SPINDLE_BROKER. A password has no place in a command line. No key is needed:
        what jobs are made of is not looked at.

        <comment>What is shown</comment>
          waiting  may be claimed; the age is that of the oldest
          running  an agent has it, the owner
          delayed  may not be claimed yet, as it is to be tried again later
          blocked  another job of its key runs
          dead     it failed for good, and is kept until it is retried or deleted
          Below that stand jobs, of each status those that --limit allows: the oldest
          of those that wait, of dead letters the newest. Times are the broker's, in
          UTC.

        <comment>Exit status</comment>
          0      done
          1      some of the ids are not among the dead letters
          253    the broker refuses, or is set up so that it would lose jobs
          254    the broker can't be reached
          255    bad options, or a broker file that can't be used
        HELP;

    public function __construct()
    {
        parent::__construct('queue');
    }

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        GivenQueue::addOptions($this
            ->setDescription('Shows and manages what is in a queue')
            ->setHelp(self::HELP)
            ->addUsage('show thumbnails')
            ->addArgument('action', InputArgument::REQUIRED, 'show, retry, delete or purge')
            ->addArgument('queue', InputArgument::REQUIRED, 'The name of the queue')
            ->addArgument('id', InputArgument::IS_ARRAY, 'retry, delete: dead letters'))
            ->addOption(
                'status',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "show: jobs that are waiting, running,\ndelayed or dead [default: all but waiting]\n",
            )
            ->addOption('limit', null, $value, "show: so many jobs of each status at most\n[default: 50]")
            ->addOption('all', null, $flag, 'retry, delete: all dead letters')
            ->addOption('yes', null, $flag, 'purge: that is meant')
            ->addOption('json', null, $flag, 'Write a line of JSON');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = QueueOptions::of($input);
        $manager = new QueueManager($options->broker, $options->queue);

        return match ($options->action) {
            QueueAction::Show => self::show($manager->report($options->statuses, $options->limit), $options, $output),
            QueueAction::Retry => self::printCount($manager->retry($options->ids), 'retried', $options, $output),
            QueueAction::Delete => self::printCount($manager->delete($options->ids), 'deleted', $options, $output),
            QueueAction::Purge => self::printCount($manager->purge(), 'purged', $options, $output),
        };
    }

    private static function show(QueueReport $report, QueueOptions $options, OutputInterface $output): int
    {
        if ($options->json) {
            $output->writeln($report->json(), OutputInterface::OUTPUT_RAW);

            return ExitStatus::OK;
        }
        foreach ($report->text() as $title => $lines) {
            $output->writeln("<comment>{$title}</comment>");
            $output->writeln($lines, OutputInterface::OUTPUT_RAW);
        }

        return ExitStatus::OK;
    }

    private static function printCount(int $jobs, string $done, QueueOptions $options, OutputInterface $output): int
    {
        $text = $options->json
            ? json_encode(['queue' => $options->queue, $done => $jobs], \JSON_THROW_ON_ERROR)
            : "{$jobs} " . ($jobs === 1 ? 'job' : 'jobs') . " {$done}";
        $output->writeln($text, OutputInterface::OUTPUT_RAW);
        $missing = \count($options->ids ?? []) - $jobs;
        if ($options->ids === null || $missing === 0) {
            return ExitStatus::OK;
        }
        fwrite(
            \STDERR,
            "spindle: {$missing} of the ids " . ($missing === 1 ? 'is' : 'are') . " not among the dead letters\n",
        );

        return ExitStatus::ofFailures(1);
    }
}
