<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\PhpMessages;
use Spindle\Cli\Internal\StandardErrorLog;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

/** The command `spindle work`, which runs jobs of queues on this machine. */
final class WorkCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs the tasks that other processes, on this machine or others, submit to a
        queue by Spindle\Remote\RemoteExecutor, and the commands of spindle run
        --queue and Spindle\Remote\RemoteCommands. Start one on each machine:

          <info>export SPINDLE_KEY_FILE=/etc/app/spindle.key</info>
          <info>export SPINDLE_BROKER=redis://:password@host</info>
          <info>spindle work --queue thumbnails</info>      one worker per CPU
          <info>spindle work --queue thumbnails --workers 16 --bootstrap app.php</info>
          <info>spindle work --queue thumbnails --broker-file /etc/app/broker</info>
          <info>spindle work --queue thumbnails --admin 127.0.0.1:9085</info>

        <comment>The broker</comment>
          Redis 7 or newer, or Valkey, with an append-only file. Its address comes
          from --broker or --broker-file, otherwise from SPINDLE_BROKER. Never write
          a password in a command line. While the broker can't be reached, the agent
          waits for it.

        <comment>The keys</comment>
          SPINDLE_KEY_FILE names a file with a secret of 32 bytes or more per line,
          which only its owner can read. A job runs only if one of these secrets has
          signed it. To create the file:
            (umask 077; head -c 32 /dev/urandom | base64 > FILE)

        <comment>Signals</comment>
          HUP        Run new tasks in new workers, which load the current code.
                     Running tasks go on. If the agent's terminal has been closed,
                     HUP acts as TERM.
          INT, TERM  Claim no more jobs, finish the running ones, give back those that
                     have not started, and exit. After --stop-timeout or a second
                     signal, running jobs are ended and given back. That counts
                     neither as an attempt nor as a crash. A third signal exits at
                     once. Other agents then run the jobs when the lease has ended.

        <comment>Exit status</comment>
          0      ended by INT or TERM; all jobs are done or given back
          130    ended by a second INT
          143    ended by a second TERM
          253    the broker refuses the agent, or its settings would lose jobs
          254    no worker can start, no job can be verified, or the admin address
                 can't be used
          255    invalid options, key file or broker file, or started as root
        HELP;

    public function __construct()
    {
        parent::__construct('work');
    }

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        GivenQueue::addOptions($this
            ->setDescription('Runs the tasks and commands of a queue on this machine')
            ->setHelp(self::HELP)
            ->addUsage('--queue thumbnails [options]')
            ->addOption(
                'queue',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "Serve this queue. Several queues share the\nworkers by weights such as NAME=3\n",
            ))
            ->addOption('workers', null, $value, "Run up to N tasks at once [default: one per\nusable CPU]")
            ->addOption('bootstrap', null, $value, "Load this PHP file in each worker before its\nfirst task")
            ->addOption(
                'memory-limit',
                null,
                $value,
                "Set PHP's memory_limit of each worker, such\nas 256M [default: this PHP's own]",
            )
            ->addOption(
                'lease',
                null,
                $value,
                "Let other agents run this agent's jobs after\nN seconds without a renewal [default: 10]",
            )
            ->addOption('heartbeat', null, $value, 'Renew the lease every N seconds [default: 1]')
            ->addOption(
                'margin',
                null,
                $value,
                "End running jobs N seconds before the end of\n"
                    . "the lease if it could not be renewed\n[default: 3]",
            )
            ->addOption(
                'no-guard',
                null,
                $flag,
                "Do not start the process that ends the jobs\nwhen the agent itself is blocked",
            )
            ->addOption('retention', null, $value, 'Keep outcomes for N seconds [default: 3600]')
            ->addOption(
                'max-result',
                null,
                $value,
                "Fail tasks whose result has more than N\nbytes [default: 16777216]",
            )
            ->addOption(
                'max-dead',
                null,
                $value,
                "Keep at most N dead letters, and drop older\nones [default: 100000]",
            )
            ->addOption(
                'dead-age',
                null,
                $value,
                "Keep dead letters for this time, in seconds\nor as 12h [default: 30d]",
            )
            ->addOption(
                'stop-timeout',
                null,
                $value,
                "Wait N seconds for running jobs after INT or\nTERM, and then give them back [default: 25]",
            )
            ->addOption('admin', null, $value, "Serve /metrics, /healthz, /livez and a status\npage on this address")
            ->addOption(
                'admin-host',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "Also accept this host name at the admin\naddress, or * for any. IP addresses and\n"
                    . "localhost are always accepted\n",
            )
            ->addOption('allow-root', null, $flag, 'Allow running as root')
            ->addOption('log-format', null, $value, "Write text or json lines to standard error\n[default: text]")
            ->addOption('quiet', null, $flag, 'Log only warnings and errors');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = WorkOptions::of($input);
        $error = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $log = new StandardErrorLog($options->json, $error->isDecorated(), $options->quiet);
        PhpMessages::logTo($log);

        return (new AgentProcess($options, $log))->run();
    }
}
