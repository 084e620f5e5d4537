<?php

declare(strict_types=1);

namespace Spindle\Cli;

use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle bench`: runs the benchmarks of bench/ in a separate process, and passes on its exit status. */
final class BenchCommand extends Command
{
    private const HELP = <<<'HELP'
        Runs the same commands by Spindle and by each of its peers that is installed, in turn and each in
        a fresh process, and prints the medians:

          <info>spindle bench commands</info>
          <info>spindle bench commands --memory 0,10,50,100,500</info>   with so many megabytes held
          <info>spindle bench commands --command 'gzip -9 < notes.txt | wc -c' --peers xargs,parallel</info>

        Where there is a C compiler, the limit is a C program that starts the same commands.

        Runs the same PHP tasks through a pool of workers, and through those of its peers:

          <info>spindle bench tasks</info>
          <info>spindle bench tasks --only bulk,mix --workers 2 --peers none</info>
          <info>spindle bench tasks --only cpu --iterations 1000000 --json cpu.json</info>

        Speaks to PostgreSQL, a temporary cluster or the server that is named, and lets its peers do the same:

          <info>spindle bench postgres</info>
          <info>spindle bench postgres --only select --connections 1,4,8 --fibers 1,16,64,256</info>
          <info>spindle bench postgres --only rows,copy --dsn 'postgres://user@db.example/test' --json rows.json</info>

        Serves HTTP by Spindle's server and by those of its peers that are found, with wrk as the client:

          <info>spindle bench http</info>
          <info>spindle bench http --only text,echo --autoload ../peers/vendor/autoload.php</info>
          <info>spindle bench http --only soak -n 10000000 --json soak.json</info>

        Serves the aircraft application of examples/ by Spindle and by nginx with PHP-FPM, on the same
        database:

          <info>spindle bench aircraft --html report.html</info>
          <info>spindle bench aircraft --only crud --rounds 1 --json crud.json</info>
          <info>spindle bench aircraft --only latency --peers fpm-plain --seconds 10</info>

        Has tasks run by an agent, over a temporary Redis or Valkey, in both of its tiers:

          <info>spindle bench remote</info>
          <info>spindle bench remote --only bulk,single --rounds 3 --json remote.json</info>
          <info>spindle bench remote --only recovery --kills 100</info>

        Creates threads, forks and processes, and uses a worker again; each on every PHP that is named:

          <info>spindle bench contexts</info>
          <info>spindle bench contexts --php /usr/bin/php --php /opt/php-zts/bin/php --max 100 --samples 5</info>

        With --against, every benchmark except contexts measures a second checkout of Spindle in alternating
        rounds. It prints the ratios of the rates and of the CPU time:

          <info>spindle bench http --only text --against ../spindle-1.0</info>

        Options that are for one of them are refused by the others.
        HELP;

    private const SCRIPTS = [
        'commands' => 'commands.php',
        'tasks' => 'tasks.php',
        'postgres' => 'postgres.php',
        'http' => 'http.php',
        'aircraft' => 'aircraft.php',
        'remote' => 'remote.php',
        'contexts' => 'contexts.php',
    ];

    /** Options of this command, by name: the script's option, a shortcut, the help text. */
    private const OPTIONS = [
        'memory' => [
            '--memory',
            null,
            'commands: megabytes that the measuring process holds, between commas [default: 0]',
        ],
        'count' => [
            '-n',
            'n',
            'Commands, tasks or queries for each measurement, requests of soak, rows of bulk [default: 3000 commands; 1000000 requests and rows; 100000 tasks of remote; the others have a number for each]',
        ],
        'jobs' => ['-j', 'j', 'commands: so many at once [default: 8]'],
        'rounds' => [
            '--rounds',
            null,
            'commands, tasks, postgres, http, aircraft, remote: measurements of each contestant [default: 5]',
        ],
        'command' => [
            '--command',
            null,
            'commands: the line to run; its output has to be the same each time [default: echo hi]',
        ],
        'tasks' => ['--tasks', null, "commands: command, or TaskRunner.php's tasks: echo or sleep [default: command]"],
        'start' => [
            '--start',
            null,
            'commands: how Spindle starts them, posix_spawn or proc_open; auto measures what there is [default: auto]',
        ],
        'peers' => [
            '--peers',
            null,
            'Names between commas, or none; all takes those that are installed [default: all]',
        ],
        'only' => [
            '--only',
            null,
            'tasks: of bulk, single, objects, mix, cpu, echo, memory, start, death, between commas; postgres: of select, cells, far, unit, update, rows, parameter, stream, copy, sleep, gaps, cancel, acquire; http: of text, text-same, json, echo, one, connections, two, wait, idle, soak, slow, tls; aircraft: of crud, latency, sleep, certificates, bulk; remote: of bulk, single, recovery, backlog [default: all]',
        ],
        'workers' => ['--workers', null, 'tasks: workers of bulk, between commas [default: 1,2,4,8]'],
        'contexts' => [
            '--contexts',
            null,
            'tasks: what workers are, of process, fork, thread, between commas [default: process]',
        ],
        'connections' => [
            '--connections',
            null,
            'postgres: of select, cells, unit and update, between commas [default: some of 1, 4 and 8]; http: of the client [default: 50]; aircraft: of Spindle to the database in latency and sleep [default: 100]',
        ],
        'fibers' => [
            '--fibers',
            null,
            'postgres: that share these connections, between commas [default: some of 1, 64 and 256]',
        ],
        'bytes' => [
            '--bytes',
            null,
            'tasks: of each string of echo [default: 1048576]; postgres: of the large parameter [default: 33554432]',
        ],
        'iterations' => ['--iterations', null, 'Of a CPU-bound task [default: 10000000; contexts: 1000000]'],
        'pumice' => ['--pumice', null, "tasks: the folder of Pumice's source, so that it takes part in cpu"],
        'limit' => [
            '--limit',
            null,
            'tasks, postgres: seconds that a measurement may take, for there are peers that hang [default: 900; postgres: 600]',
        ],
        'dsn' => ['--dsn', null, 'postgres: the server to measure, by a DSN [default: a temporary cluster]'],
        'clients' => ['--clients', null, 'aircraft: at once [default: 50]'],
        'cycles' => ['--cycles', null, 'aircraft: of each client of crud [default: 200]'],
        'seconds' => ['--seconds', null, 'http, aircraft: of load for each measurement [default: 3; aircraft: 5]'],
        'swoole' => ['--swoole', null, "aircraft: the file of Swoole's extension, so that it takes part in crud"],
        'autoload' => ['--autoload', null, 'http: a file by which PHP finds peers; may be given several times'],
        'deadline' => [
            '--deadline',
            null,
            'http: seconds for the head of a request, which slow clients do not keep [default: 10]',
        ],
        'kills' => [
            '--kills',
            null,
            'remote: workers that are killed in recovery, and a quarter as many agents [default: 20]',
        ],
        'backlog' => ['--backlog', null, 'remote: jobs of the long queue [default: 1000000]'],
        'max' => ['--max', null, 'contexts: created at once [default: 100]'],
        'samples' => ['--samples', null, 'contexts: measurements of each [default: 5]'],
        'php' => ['--php', null, 'contexts: a PHP to measure; may be given several times [default: this one]'],
        'against' => ['--against', null, 'all except contexts: measure the checkout of Spindle in this folder, too'],
        'json' => ['--json', null, 'Write the raw data to this file'],
        'html' => ['--html', null, 'aircraft: write a report with charts to this file'],
    ];

    public function __construct()
    {
        parent::__construct('bench');
    }

    protected function configure(): void
    {
        $this->setDescription('Measures Spindle against its peers on this machine')
            ->setHelp(self::HELP)
            ->addArgument(
                'what',
                InputArgument::REQUIRED,
                'What is measured: ' . implode(', ', array_keys(self::SCRIPTS)),
            )
            ->addOption('cold', null, InputOption::VALUE_NONE, 'commands: take the start of a pool into its figure')
            ->addOption(
                'first',
                null,
                InputOption::VALUE_NONE,
                "all except contexts: only Spindle's first contestant, no peers",
            );
        foreach (self::OPTIONS as $name => [, $shortcut, $help]) {
            $this->addOption(
                $name,
                $shortcut,
                InputOption::VALUE_REQUIRED | (\in_array(
                    $name,
                    ['php', 'autoload'],
                    true,
                ) ? InputOption::VALUE_IS_ARRAY : 0),
                $help,
            );
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        return self::runScript(
            [\PHP_BINARY, self::script($input->getArgument('what')), ...self::arguments($input)],
            $output,
        );
    }

    /** @throws UsageException */
    private static function script(mixed $what): string
    {
        $what = \is_string($what) ? $what : '';
        if (!isset(self::SCRIPTS[$what])) {
            throw new UsageException(
                "argument '{$what}' is not allowed; give " . implode(', ', array_keys(self::SCRIPTS)),
            );
        }
        $file = \dirname(__DIR__, 2) . '/bench/' . self::SCRIPTS[$what];

        return is_file($file)
            ? $file
            : throw new UsageException('the benchmarks are not part of this installation; take a checkout of Spindle');
    }

    /** @return list<string> */
    private static function arguments(InputInterface $input): array
    {
        $arguments = [];
        foreach (['cold', 'first'] as $flag) {
            if ($input->getOption($flag) === true) {
                $arguments[] = "--{$flag}";
            }
        }
        foreach (self::OPTIONS as $name => [$option]) {
            foreach (array_filter((array) $input->getOption($name), is_string(...)) as $value) {
                array_push($arguments, $option, $value);
            }
        }

        return $arguments;
    }

    /** @param list<string> $command */
    private static function runScript(array $command, OutputInterface $output): int
    {
        $process = proc_open($command, [\STDIN, ['pipe', 'w'], \STDERR], $pipes);
        if ($process === false || !isset($pipes[1])) {
            throw new \RuntimeException("{$command[0]} could not be started");
        }
        while (!feof($pipes[1])) {
            $output->write((string) fread($pipes[1], 8192), false, OutputInterface::OUTPUT_RAW);
        }

        return proc_close($process);
    }
}
