<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Work;

use Spindle\Cli\Internal\BrokerOptions;
use Spindle\Cli\Internal\PhpMessages;
use Spindle\Cli\Internal\StandardErrorLog;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

#[AsCommand('work', 'Runs the tasks and commands of a queue on this machine')]
final class WorkCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs the jobs of a queue: the tasks of Spindle\Remote\RemoteExecutor, and
        the commands of spindle run --queue and Spindle\Remote\RemoteCommands. A
        process of spindle work is an agent. Start one on each machine:

          <info>export SPINDLE_KEY_FILE=/etc/app/spindle.key</info>
          <info>export SPINDLE_BROKER=redis://:password@host</info>
          <info>spindle work --queue thumbnails</info>      one worker per CPU
          <info>spindle work --queue thumbnails --workers 16 --bootstrap app.php</info>
          <info>spindle work --queue thumbnails --broker-file /etc/app/broker</info>
          <info>spindle work --queue thumbnails --admin 127.0.0.1:9085</info>

        <comment>The engine</comment>
          Redis 7 or newer, or Valkey, with an append-only file. Its address comes
          from --broker or --broker-file, otherwise from SPINDLE_BROKER. Never write
          a password in a command line. While the engine can't be reached, the agent
          waits for it.

        <comment>The keys</comment>
          SPINDLE_KEY_FILE names a file that only its owner can read, with one
          secret of 32 bytes or more per line. A job runs only if one of these
          secrets has signed it. To create the file:
            (umask 077; head -c 32 /dev/urandom | base64 > FILE)

        <comment>Signals</comment>
          HUP        Run new tasks in new workers, which load the current code.
                     Running tasks go on. If a worker can't load this code, the old
                     workers go on, and the log says why. If the agent's terminal
                     has been closed, HUP acts as TERM.
          INT, TERM  Claim no more jobs, finish the running ones, give back those that
                     have not started, and exit. After --stop-timeout or a second
                     signal, running jobs are ended and given back. That counts
                     neither as an attempt nor as a crash. A third signal exits at
                     once. Other agents then run the jobs when the lease has ended.

        <comment>Exit status</comment>
          0      ended by INT or TERM; all jobs are done or given back
          130    ended by a second INT
          143    ended by a second TERM
          253    the engine refuses the agent, or has settings with which it could
                 lose jobs, such as no append-only file
          254    no worker can start, no job can be verified, or the admin address
                 can't be used
          255    invalid options, key file or --broker-file, or started as root
        HELP;

    private const VALUE = InputOption::VALUE_REQUIRED;
    private const VALUES = InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY;
    private const FLAG = InputOption::VALUE_NONE;

    /** Options in the order of the help, after the options of the broker. Text lines have at most 35 columns. */
    private const OPTIONS = [
        'workers' => [self::VALUE, <<<'TEXT'
            Run up to N tasks at once [default:
            one per usable CPU]
            TEXT],
        'bootstrap' => [self::VALUE, <<<'TEXT'
            Load this PHP file in each worker
            before its first task
            TEXT],
        'memory-limit' => [self::VALUE, <<<'TEXT'
            Set PHP's memory_limit of each
            worker, such as 256M, or -1 for
            none [default: that of php.ini or a
            share of the machine's memory]
            TEXT],
        'lease' => [self::VALUE, <<<'TEXT'
            Let other agents run this agent's
            jobs after N seconds without a
            renewal [default: 10]
            TEXT],
        'heartbeat' => [self::VALUE, <<<'TEXT'
            Renew the lease every N seconds
            [default: 1]
            TEXT],
        'lease-margin' => [self::VALUE, <<<'TEXT'
            End running jobs N seconds before
            the end of the lease if it could
            not be renewed [default: 3]
            TEXT],
        'no-lease-guard' => [self::FLAG, <<<'TEXT'
            Do not start the process that ends
            the jobs when the agent itself is
            blocked
            TEXT],
        'outcome-retention' => [self::VALUE, <<<'TEXT'
            Keep outcomes for N seconds
            [default: 3600]
            TEXT],
        'max-result' => [self::VALUE, <<<'TEXT'
            Fail tasks whose result has more
            than N bytes [default: 16777216]
            TEXT],
        'max-dead-letters' => [self::VALUE, <<<'TEXT'
            Keep at most N dead letters, and
            drop older ones [default: 100000]
            TEXT],
        'dead-retention' => [self::VALUE, <<<'TEXT'
            Keep dead letters for this time, in
            seconds or as 12h [default: 30d]
            TEXT],
        'stop-timeout' => [self::VALUE, <<<'TEXT'
            Wait N seconds for running jobs
            after INT or TERM, and then give
            them back [default: 25]
            TEXT],
        'admin' => [self::VALUE, <<<'TEXT'
            Serve /metrics, /healthz, /livez
            and a status page on this address
            TEXT],
        'admin-host' => [self::VALUES, <<<'TEXT'
            Also accept this host name at the
            admin address, or * for any. IP
            addresses and localhost are always
            accepted

            TEXT],
        'allow-root' => [self::FLAG, 'Allow running as root'],
        'log-format' => [self::VALUE, <<<'TEXT'
            Write text or json lines to
            standard error [default: text]
            TEXT],
        'quiet' => [self::FLAG, 'Log only warnings and errors'],
    ];

    protected function configure(): void
    {
        $this->setHelp(self::HELP)
            ->addUsage('--queue thumbnails [options]')
            ->addOption(
                'queue',
                null,
                self::VALUES,
                "Serve this queue. Several queues\nshare the workers by weights such\nas NAME=3\n",
            );
        BrokerOptions::addOptions($this);
        foreach (self::OPTIONS as $name => [$mode, $help]) {
            $this->addOption($name, null, $mode, $help);
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $options = WorkOptions::of($input);
        $error = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
        $log = new StandardErrorLog($options->json, $error->isDecorated(), $options->quiet);
        PhpMessages::logTo($log, static fn(): array => []);

        return (new AgentProcess($options, $log))->run();
    }
}
