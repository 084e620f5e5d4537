<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\AgentProcess;
use Spindle\Cli\Internal\GivenQueue;
use Spindle\Cli\Internal\PhpMessages;
use Spindle\Cli\Internal\ServeLog;
use Spindle\Cli\Internal\WorkOptions;
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
          <info>spindle work --queue thumbnails</info>      a worker for each CPU
          <info>spindle work --queue thumbnails --workers 16 --bootstrap app.php</info>
          <info>spindle work --queue thumbnails --broker-file /etc/app/broker</info>
          <info>spindle work --queue thumbnails --admin 127.0.0.1:9085</info>

        <comment>The broker</comment>
          Redis 7 or newer, or Valkey, with an append-only file. Its address is that
          of --broker, else of --broker-file, else of SPINDLE_BROKER. A password has
          no place in a command line. While it can't be reached, this waits for it.

        <comment>The keys</comment>
          The file that SPINDLE_KEY_FILE names holds a secret of 32 bytes or more in
          each line, and only its owner can read it. Tasks that were signed by none
          of them do not run. To make one:
            (umask 077; head -c 32 /dev/urandom | base64 > FILE)

        <comment>Signals</comment>
          HUP        new tasks run in new workers, which load the code anew; those
                     that run go on. As TERM when the terminal is gone that it was
                     started at
          INT, TERM  claim no more, finish what runs, give back what has not started,
                     and end. What still runs after --stop-timeout, or at a second
                     signal, is ended and given back: that counts neither as a try
                     nor as a crash. A third signal ends this at once, and what ran
                     is others' when the lease has ended

        <comment>Exit status</comment>
          0      ended by INT or TERM, what ran is done or given back
          130    ended by a second INT
          143    ended by a second TERM
          253    the broker refuses, or is set up so that it would lose jobs
          254    no worker can be started, no job can be verified, or the admin
                 address can't be used
          255    bad options, a key file or broker file that can't be used, or root
        HELP;

    public function __construct()
    {
        parent::__construct('work');
    }

    protected function configure(): void
    {
        [$value, $flag] = [InputOption::VALUE_REQUIRED, InputOption::VALUE_NONE];
        GivenQueue::addOptions($this
            ->setDescription('Runs the tasks of a queue that other processes submit to')
            ->setHelp(self::HELP)
            ->addUsage('--queue thumbnails [options]')
            ->addOption(
                'queue',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "The name of the queue; several share the\nworkers, by weights such as NAME=3\n",
            ))
            ->addOption('workers', null, $value, "Tasks at once [default: as many as usable\nCPUs]")
            ->addOption('bootstrap', null, $value, "A PHP file that each worker loads before\nits first task")
            ->addOption(
                'memory-limit',
                null,
                $value,
                "PHP's memory_limit of each worker, such\nas 256M [default: this PHP's own]",
            )
            ->addOption(
                'lease',
                null,
                $value,
                "Seconds after which its tasks are others',\nif it is not heard of [default: 10]",
            )
            ->addOption('beat', null, $value, "Seconds between two renewals of the lease\n[default: 1]")
            ->addOption(
                'margin',
                null,
                $value,
                "Seconds before the end of a lease that could\nnot be renewed at which tasks are ended\n[default: 3]",
            )
            ->addOption('no-guard', null, $flag, "Start no process that ends tasks when this\none stands still")
            ->addOption('retention', null, $value, "Seconds that outcomes are kept [default:\n3600]")
            ->addOption('max-result', null, $value, "Bytes that a result may have [default:\n16777216]")
            ->addOption(
                'max-dead',
                null,
                $value,
                "Dead letters that the queue keeps; the\noldest of more are dropped [default: 100000]",
            )
            ->addOption('dead-age', null, $value, "Seconds that it keeps them, or 30d\n[default: 30d]")
            ->addOption(
                'stop-timeout',
                null,
                $value,
                "Seconds that tasks have to finish once it is\ntold to stop; what runs then is given back\n[default: 25]",
            )
            ->addOption('admin', null, $value, "An address for /metrics, /healthz, /livez\nand a status page")
            ->addOption(
                'admin-host',
                null,
                $value | InputOption::VALUE_IS_ARRAY,
                "A name by which it may be asked, beside IP\naddresses and localhost; * for any;\nseveral times",
            )
            ->addOption('allow-root', null, $flag, 'Run as root, which is refused otherwise')
            ->addOption('log-format', null, $value, "Lines on standard error: text or json\n[default: text]")
            ->addOption('quiet', null, $flag, 'Log warnings and errors only');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = WorkOptions::of($input);
        $error = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $log = new ServeLog($options->json, $error->isDecorated(), $options->quiet);
        PhpMessages::logTo($log);

        return (new AgentProcess($options, $log))->run();
    }
}
