<?php

declare(strict_types=1);

/*
 * Starts a Redis, two agents and a script that sends them tasks. Then kills one agent.
 *
 * Usage: ./demo remote [--tasks=N] [--json]
 */

use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Symfony\Component\Console\Helper\ProgressBar;
use Symfony\Component\Console\Output\ConsoleOutput;

require __DIR__ . '/../../vendor/autoload.php';

const QUEUE = 'demo';

/** Seconds after which other agents run the tasks of a silent agent; 10 by default. */
const LEASE = 5;

$options = getopt('h', ['help', 'tasks:', 'json']);
if (isset($options['h']) || isset($options['help'])) {
    echo <<<'TEXT'
        Lets two agents compute the digit sums of many squares, and kills one of them meanwhile.

        Usage: ./demo remote [options]

          --tasks=N    run N tasks (default: 2000)
          --json       print the result as JSON, and nothing else on standard output
          --help       print this help

        Exit status: 0, or 1 when a result is missing, wrong or duplicate.

        TEXT;
    exit(0);
}
$tasks = max(100, is_string($options['tasks'] ?? null) ? (int) $options['tasks'] : 2000);

/**
 * A task: works for a moment, and returns the agent's name.
 *
 * @return array{int, string}
 */
function digits(int $number): array
{
    usleep(5000);

    return [digitSum($number), (string) getenv('DEMO_AGENT')];
}

function digitSum(int $number): int
{
    return array_sum(array_map(intval(...), str_split((string) ($number * $number))));
}

/**
 * @param array<string, string> $environment
 *
 * @return resource
 */
function agent(string $name, array $environment)
{
    $command = [
        PHP_BINARY,
        dirname(__DIR__, 2) . '/bin/spindle',
        'work',
        '--queue',
        QUEUE,
        '--workers',
        '2',
        '--bootstrap',
        __FILE__,
        '--lease',
        (string) LEASE,
        '--quiet',
        '--allow-root',
    ];
    $process = proc_open(
        $command,
        [['file', '/dev/null', 'r'], STDERR, STDERR],
        $pipes,
        null,
        ['DEMO_AGENT' => $name, ...$environment],
    );

    return $process === false ? throw new RuntimeException("The agent {$name} does not start") : $process;
}

if (getenv('DEMO_AGENT') !== false) {
    return; // a worker needs only the functions above
}

$output = (new ConsoleOutput())->getErrorOutput();
$redis = TemporaryRedis::start();
$keyFile = "{$redis->directory}/key";
touch($keyFile);
chmod($keyFile, 0600);
file_put_contents($keyFile, bin2hex(random_bytes(32)));
$environment = [
    'SPINDLE_BROKER' => $redis->url(),
    'SPINDLE_KEY_FILE' => $keyFile,
    ...array_filter(getenv(), is_string(...)),
];
$output->writeln(
    "Redis listens on 127.0.0.1:{$redis->port}. Two agents start: spindle work --queue " . QUEUE . ' --workers 2',
);
$agents = ['first' => agent('first', $environment), 'second' => agent('second', $environment)];

$broker = new RedisBroker($redis->url());
$executor = new RemoteExecutor($broker, QUEUE, SigningKeys::fromFile($keyFile));
$bar = new ProgressBar($output, $tasks);
$bar->setFormat(' %current%/%max% [%bar%] %percent:3s%%');
$bar->setRedrawFrequency($output->isDecorated() ? 10 : intdiv($tasks, 5));
$done = ['first' => 0, 'second' => 0];
$seen = [];
$wrong = 0;
$start = hrtime(true);
foreach ($executor->mapUnordered(range(1, $tasks), digits(...)) as $key => [$sum, $by]) {
    $wrong += $sum === digitSum($key + 1) && !isset($seen[$key]) ? 0 : 1;
    $seen[$key] = true;
    $done[$by] = ($done[$by] ?? 0) + 1;
    $bar->advance();
    if (count($seen) === intdiv($tasks, 3)) {
        proc_terminate($agents['first'], SIGKILL);
        $output->writeln(
            "\nThe first agent is killed while it runs tasks. Its lease ends after " . LEASE . ' seconds.',
        );
    }
}
$bar->finish();
$seconds = (hrtime(true) - $start) / 1e9;
proc_terminate($agents['second'], SIGTERM); // the agent finishes its running tasks
array_map(proc_close(...), $agents);
$figures = $broker->statistics(QUEUE);

$result = [
    'tasks' => $tasks,
    'results' => count($seen),
    'wrong_or_twice' => $wrong,
    'by_the_first_agent' => $done['first'],
    'by_the_second_agent' => $done['second'],
    'lost_with_the_first_and_run_again' => $figures['lost_total'],
    'seconds' => round($seconds, 2),
];
$output->writeln('');
if (isset($options['json'])) {
    echo json_encode($result, JSON_THROW_ON_ERROR), "\n";
} else {
    printf(
        '%s tasks, %s results, %d wrong or twice. %s by the first agent, %s by the second;'
            . " %d were running on the first agent when it was killed, and ran again.\n",
        number_format($tasks),
        number_format(count($seen)),
        $wrong,
        number_format($done['first']),
        number_format($done['second']),
        $figures['lost_total'],
    );
}
exit($wrong === 0 && count($seen) === $tasks ? 0 : 1);
