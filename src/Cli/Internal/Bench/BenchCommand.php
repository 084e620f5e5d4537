<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Bench;

use Spindle\Cli\Internal\UsageException;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** `spindle bench`: runs a benchmark of bench/ in a separate process, and returns the exit status of that process. */
#[AsCommand('bench', 'Compares Spindle with similar programs on this machine')]
final class BenchCommand extends Command
{
    private const HELP = <<<'HELP'
        Measures Spindle and its peers (comparable programs) on this machine, in
        alternating rounds. Each contestant (Spindle or a peer) runs in a new process.
        Prints medians and ratios as Markdown tables.

          commands   Shell commands through a pool, compared with xargs, GNU parallel,
                     PHP libraries and, if a C compiler is installed, a C program
          tasks      PHP callables through a pool of workers
          postgres   The PostgreSQL client, on a temporary server or on --dsn
          http       The HTTP server, with wrk as the client
          http-client
                     The HTTP client, compared with Guzzle, undici and curl
          aircraft   The application in examples/, compared with nginx and PHP-FPM on
                     the same database
          remote     Tasks through a temporary Redis or Valkey server
          contexts   Creation of threads, forks and processes, with each PHP of --php

        The benchmarks need a Git checkout of Spindle, because the Composer package
        does not contain them. A benchmark refuses the options of other benchmarks.
        --against also measures a second checkout of Spindle, and prints the ratios of
        rates and CPU time.

        <comment>Examples</comment>
          <info>spindle bench commands --memory 0,10,50,100,500</info>
          <info>spindle bench commands --command 'gzip -9 < a.txt' --peers xargs,parallel</info>
          <info>spindle bench tasks --only bulk,mix --workers 2 --peers none</info>
          <info>spindle bench tasks --only cpu --iterations 1000000 --json cpu.json</info>
          <info>spindle bench postgres --only select --connections 1,4,8 --fibers 1,64</info>
          <info>spindle bench postgres --only rows,copy --dsn 'postgres://user@host/test'</info>
          <info>spindle bench http --only text,echo --autoload ../peers/vendor/autoload.php</info>
          <info>spindle bench http --only soak -n 10000000 --json soak.json</info>
          <info>spindle bench http --only text --against ../spindle-1.0</info>
          <info>spindle bench http-client --undici ../peers/undici</info>
          <info>spindle bench aircraft --html report.html</info>
          <info>spindle bench aircraft --only latency --peers fpm-plain --seconds 10</info>
          <info>spindle bench remote --only recovery --kills 100</info>
          <info>spindle bench contexts --php /usr/bin/php --php /opt/php-zts/bin/php</info>
        HELP;

    private const BENCHMARKS
        = ['commands', 'tasks', 'postgres', 'http', 'http-client', 'aircraft', 'remote', 'contexts'];

    private const VALUE = InputOption::VALUE_REQUIRED;
    private const VALUES = InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY;

    private const FLAGS = [
        'cold' => "commands: Include the start of a pool in the\nmeasurement",
        'first' => "all except contexts: Measure only Spindle,\nand only the first variant of it",
    ];

    /** Options with a value. Each entry: option of the script, shortcut, mode, help (lines of at most 45 columns). */
    private const OPTIONS = [
        'memory' => ['--memory', null, self::VALUE, <<<'TEXT'
            commands: Hold N megabytes in the measuring
            process; a list is allowed [default: 0]
            TEXT],
        'count' => ['-n', 'n', self::VALUE, <<<'TEXT'
            Run N commands, tasks or queries in each
            measurement. http soak, http-client get: Send
            N requests. aircraft bulk: Use N rows.
            contexts: Create N threads, forks or
            processes at once [default: 3000 commands,
            1000000 requests in soak, 20000 in get,
            1000000 rows, 100000 remote tasks, 100
            contexts; tasks, postgres: various]
            TEXT],
        'jobs' => ['-j', 'j', self::VALUE, "commands: Run N commands at once\n[default: 8]"],
        'rounds' => ['--rounds', null, self::VALUE, <<<'TEXT'
            all except contexts: Measure each contestant
            N times [default: 5]
            TEXT],
        'command' => ['--command', null, self::VALUE, <<<'TEXT'
            commands: Run this shell line, whose output
            must always be the same [default: echo hi]
            TEXT],
        'workload' => ['--workload', null, self::VALUE, <<<'TEXT'
            commands: "command" runs the shell line of
            --command; "echo" and "sleep" run the tasks
            in the benchmark of TaskRunner.php, a PHP
            library [default: command]
            TEXT],
        'start-method' => ['--start-method', null, self::VALUE, <<<'TEXT'
            commands: Start commands by posix_spawn or
            proc_open; auto measures both if available
            [default: auto]
            TEXT],
        'peers' => ['--peers', null, self::VALUE, <<<'TEXT'
            all except remote, contexts: Compare with
            these peers, separated by commas; "none" for
            no peers, "all" for all that are installed
            [default: all]
            TEXT],
        'only' => ['--only', null, self::VALUE, <<<'TEXT'
            Run only these measurements, separated by
            commas [default: all]
            tasks: bulk, single, objects, mix, cpu, echo,
            memory, start, death
            postgres: select, cells, far, unit, update,
            rows, parameter, stream, copy, sleep, gaps,
            cancel, acquire
            http: text, text-same, json, echo, one,
            connections, two, wait, idle, soak, slow,
            tls, psr7, collide, crowd, pieces,
            pieces-gzip, pieces-large
            http-client: get, upstream, events, download,
            upload
            aircraft: crud, latency, sleep, certificates,
            bulk
            remote: bulk, single, recovery, backlog
            TEXT],
        'workers' => ['--workers', null, self::VALUE, <<<'TEXT'
            tasks: Measure bulk with these numbers of
            workers [default: 1,2,4,8]
            TEXT],
        'contexts' => ['--contexts', null, self::VALUE, <<<'TEXT'
            tasks: Run workers as process, fork or
            thread; a list is allowed [default: process]
            TEXT],
        'connections' => ['--connections', null, self::VALUE, <<<'TEXT'
            postgres: Use these numbers of connections in
            select, cells, unit and update [default: 1, 4
            or 8, depending on the measurement;
            cells: 1,2,4,8,16]
            http: Open N connections [default: 50]
            aircraft: Open N connections to the database
            in latency and sleep [default: 100]
            TEXT],
        'fibers' => ['--fibers', null, self::VALUE, <<<'TEXT'
            postgres: Share the connections among these
            numbers of fibers [default: 1, 64 or 256,
            depending on the measurement; cells:
            8,64,256,1024]
            http-client: Send these numbers of requests
            at the same time in get [default: 64]
            TEXT],
        'megabytes' => ['--megabytes', null, self::VALUE, <<<'TEXT'
            http-client: Transfer N times 1048576 bytes
            in download and upload [default: 1024]
            TEXT],
        'streams' => ['--streams', null, self::VALUE, <<<'TEXT'
            http-client: Open N streams in events, at
            most 1000 [default: 1000]
            TEXT],
        'bytes' => ['--bytes', null, self::VALUE, <<<'TEXT'
            tasks: Send strings of N bytes in echo
            [default: 1048576]
            postgres: Send a parameter of N bytes
            [default: 33554432]
            TEXT],
        'iterations' => ['--iterations', null, self::VALUE, <<<'TEXT'
            tasks, contexts: Repeat the work of a
            CPU-bound task N times [default: 10000000;
            contexts: 1000000]
            TEXT],
        'pumice' => ['--pumice', null, self::VALUE, "tasks: Compare cpu with Pumice, whose source\nis in this folder"],
        'limit' => ['--limit', null, self::VALUE, <<<'TEXT'
            tasks, postgres: Stop a measurement after N
            seconds, because some peers hang
            [default: 900; postgres: 600]
            TEXT],
        'dsn' => ['--dsn', null, self::VALUE, <<<'TEXT'
            postgres: Measure the server of this DSN
            [default: a temporary server]
            TEXT],
        'clients' => ['--clients', null, self::VALUE, <<<'TEXT'
            aircraft: Use N clients at once in crud and
            latency, 2 N in sleep, and 8 N in the part of
            latency with a delay of 50 ms [default: 50]
            TEXT],
        'cycles' => ['--cycles', null, self::VALUE, <<<'TEXT'
            aircraft: Run N cycles of create, read,
            update and delete for each client of crud
            [default: 200]
            TEXT],
        'seconds' => ['--seconds', null, self::VALUE, <<<'TEXT'
            http: Load the server for N seconds in each
            measurement [default: 3]
            aircraft: The same in latency and
            certificates [default: 5]
            TEXT],
        'swoole' => ['--swoole', null, self::VALUE, <<<'TEXT'
            aircraft: Compare crud with Swoole, a PHP
            extension in this file
            TEXT],
        'undici' => ['--undici', null, self::VALUE, <<<'TEXT'
            http-client: Compare get with undici, which
            npm has installed in this folder
            TEXT],
        'autoload' => ['--autoload', null, self::VALUES, <<<'TEXT'
            http: Load peers through this Composer
            autoload file
            TEXT],
        'head-timeout' => ['--head-timeout', null, self::VALUE, <<<'TEXT'
            http: Wait N seconds for the head of a
            request. The clients of "slow" take longer
            [default: 10]
            TEXT],
        'kills' => ['--kills', null, self::VALUE, <<<'TEXT'
            remote: Kill N workers, and a quarter as many
            agents, in recovery [default: 20]
            TEXT],
        'backlog' => ['--backlog', null, self::VALUE, <<<'TEXT'
            remote: The measurement "backlog" compares a
            short queue with a long one: put N jobs into
            the long one [default: 1000000]
            TEXT],
        'samples' => ['--samples', null, self::VALUE, "contexts: Measure each context N times\n[default: 5]"],
        'php' => ['--php', null, self::VALUES, <<<'TEXT'
            contexts: Measure this PHP program [default:
            the one that runs spindle]

            TEXT],
        'against' => ['--against', null, self::VALUE, <<<'TEXT'
            all except contexts: Measure the checkout of
            Spindle in this folder too
            TEXT],
        'json' => ['--json', null, self::VALUE, 'Write the raw data to this file'],
        'html' => ['--html', null, self::VALUE, "aircraft: Write a report with charts to this\nfile"],
    ];

    protected function configure(): void
    {
        $this->setHelp(self::HELP)
            ->addArgument(
                'what',
                InputArgument::REQUIRED,
                "The benchmark: commands, tasks, postgres,\nhttp, http-client, aircraft, remote or\ncontexts",
            );
        foreach (self::FLAGS as $name => $help) {
            $this->addOption($name, null, InputOption::VALUE_NONE, $help);
        }
        foreach (self::OPTIONS as $name => [, $shortcut, $mode, $help]) {
            $this->addOption($name, $shortcut, $mode, $help);
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        return self::runScript(
            [\PHP_BINARY, self::script($input->getArgument('what')), ...self::arguments($input)],
            $output,
        );
    }

    private static function script(mixed $argument): string
    {
        $benchmark = \is_string($argument) ? $argument : '';
        if (!\in_array($benchmark, self::BENCHMARKS, true)) {
            throw new UsageException(
                "argument '{$benchmark}' is not a benchmark; give one of: " . implode(', ', self::BENCHMARKS),
            );
        }
        $file = \dirname(__DIR__, 4) . "/bench/{$benchmark}.php";

        return is_file($file)
            ? $file
            : throw new UsageException(
                "benchmark {$benchmark} can't run: {$file} does not exist, because the Composer package of Spindle"
                    . ' contains no benchmarks; run composer install and bin/spindle bench in a Git checkout of'
                    . ' Spindle',
            );
    }

    /** @return list<string> */
    private static function arguments(InputInterface $input): array
    {
        $arguments = [];
        foreach (array_keys(self::FLAGS) as $flag) {
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
        // Without an entry for descriptor 2, the script inherits standard error. An entry with STDERR would make PHP
        // move the position in the file if standard error is a file. Then the script could overwrite the output of
        // other processes.
        $process = proc_open($command, [1 => ['pipe', 'w']], $pipes);
        if ($process === false || !isset($pipes[1])) {
            throw new \RuntimeException("{$command[0]} could not be started");
        }
        while (!feof($pipes[1])) {
            $output->write((string) fread($pipes[1], 8192), false, OutputInterface::OUTPUT_RAW);
        }

        return proc_close($process);
    }
}
