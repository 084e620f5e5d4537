<?php

declare(strict_types=1);

/*
 * Runs the aircraft application with its own temporary database. See ./demo aircraft --help.
 *
 * Even if this process is killed, nothing that it started remains. Other processes notice its end: one removes the
 * database cluster, another ends the server, which is a command of a pool.
 */

use Aircraft\Demo\Clients;
use Aircraft\Fleet;
use Aircraft\Migrations;
use Aircraft\Transfer;
use Amp\Cancellation;
use Amp\CancelledException;
use Amp\DeferredCancellation;
use Amp\DeferredFuture;
use Amp\Future;
use Revolt\EventLoop;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Postgres\PostgresConnection;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Symfony\Component\Console\Exception\ExceptionInterface;
use Symfony\Component\Console\Formatter\OutputFormatter;
use Symfony\Component\Console\Input\ArgvInput;
use Symfony\Component\Console\Input\InputDefinition;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutput;

use function Amp\async;
use function Amp\delay;

require_once __DIR__ . '/../../vendor/autoload.php';
require_once __DIR__ . '/demo/Clients.php';

const HELP = <<<'TEXT'
    Starts PostgreSQL in a temporary folder, serves the aircraft application,
    and loads it with clients for some seconds. The application then runs until
    Ctrl-C, which stops everything and removes the database.

    Usage: ./demo aircraft [options]

      --listen=ADDRESS   serve the application at this address
                         (default: 127.0.0.1:8085)
      --admin=ADDRESS    serve metrics and the status page at this address
                         (default: 127.0.0.1:9085)
      --processes=N      serve with N processes
                         (default: one for each usable CPU, at most 4)
      --aircraft=N       fill the table with N aircraft (default: 10000)
      --clients=N        load the application with N clients (default: 30)
      --seconds=N        load it for N seconds (default: 3)
      --check            use free ports, try each request that is shown, and end
      --json             print the result of the load as JSON, and all other
                         output on standard error
      --help             print this help

    Examples:
      ./demo aircraft
      ./demo aircraft --listen 127.0.0.1:8090 --admin 127.0.0.1:9090
      ./demo aircraft --processes 1 --clients 50 --seconds 10
      ./demo aircraft --check --json

    Exit status: 0 on success; 1 when something failed; 64 for bad options; 130 when
    --check was interrupted.

    TEXT;

/** More requests to try: remark, method, target, body and type of the body. */
const EXAMPLE_REQUESTS = [
    ['ten statements of a second each, side by side', 'GET', '/sleep?n=10', '', ''],
    ['changes as they happen', 'GET', '/aircraft/events', '', ''],
    ['a document that is rendered by a worker', 'GET', '/aircraft/S-000000/certificate', '', ''],
    [
        'the most frequent types, counted by a pipeline of commands',
        'POST',
        '/reports',
        '{"by":"title","top":5}',
        'application/json',
    ],
    ['all aircraft, streamed', 'GET', '/aircraft/export', '', ''],
    [
        'more aircraft, streamed into the table',
        'POST',
        '/aircraft/import',
        "number,title,serial_number,assembly_date\nD-AIMA,Airbus A380,MSN 38,2010-05-19\n",
        'text/csv',
    ],
];

/** Ends the demonstration with a message. */
final class DemoException extends RuntimeException {}

/** @return array<string, string|bool|null> */
function options(): array
{
    $value = static fn(string $name): InputOption => new InputOption($name, null, InputOption::VALUE_REQUIRED);
    $input = new ArgvInput(null, new InputDefinition([
        ...array_map($value, ['listen', 'admin', 'processes', 'aircraft', 'clients', 'seconds']),
        new InputOption('check'), new InputOption('json'), new InputOption('help', 'h'),
    ]));

    /** @var array<string, string|bool|null> */
    return $input->getOptions();
}

/** @param array<string, string|bool|null> $options */
function number(array $options, string $name, int $default): int
{
    $value = $options[$name] ?? $default;
    $number = filter_var($value, FILTER_VALIDATE_INT, ['options' => ['min_range' => 1, 'max_range' => 1_000_000]]);

    return $number !== false
        ? $number
        : throw new UnexpectedValueException("--{$name} needs a whole number from 1 to 1000000, not \"{$value}\"");
}

/** Fails early if the address is in use. */
function checkFree(string $option, string $address, string $other): void
{
    $socket = @stream_socket_server("tcp://{$address}", $code, $why);
    if ($socket === false) {
        throw new DemoException(
            "{$address} can't be used: {$why}. Give another address: ./demo aircraft --{$option} {$other}",
        );
    }
    fclose($socket);
}

/**
 * Serves until the cancellation.
 *
 * @param Closure(string): void $warn receives the server's log entries above the level notice
 *
 * @return array{Future<CommandResult>, string, string} the server's end, and the two addresses
 */
function serve(
    string $database,
    string $listen,
    string $admin,
    int $processes,
    Closure $warn,
    Cancellation $cancellation,
): array {
    $command = Command::of(
        PHP_BINARY,
        dirname(__DIR__, 2) . '/bin/spindle',
        'serve',
        __DIR__ . '/app.php',
        '--listen',
        $listen,
        '--admin',
        $admin,
        '--status',
        '--processes',
        (string) $processes,
    )->withEnvironment(['DATABASE_URL' => $database, 'NO_COLOR' => '1']);
    $log = '';
    $up = new DeferredFuture();
    $listener = static function (string $piece) use (&$log, $up, $warn): void {
        $log .= $piece;
        for (; ($length = strpos($log, "\n")) !== false; $log = substr($log, $length + 1)) {
            $line = substr($log, 0, $length);
            if (preg_match(
                '~ Listening on http://(\S+) with \d+ process(?:es)?, and on http://(\S+) \(admin address\)$~',
                $line,
                $match,
            ) === 1) {
                $up->complete([$match[1], $match[2]]);
            } elseif (preg_match('~^\S+ (?:info|notice|debug) ~', $line) !== 1) {
                $warn($line);
            }
        }
    };
    /** @var Future<CommandResult> $end */
    $end = async(
        static fn(): CommandResult => (new CommandPool(1, options: new CommandPoolOptions(gracePeriod: 5.0)))->execute(
            $command->withStdout($listener)->withStderr($listener),
            $cancellation,
        ),
    );
    $end->map(
        static fn() => $up->isComplete() ? null : $up->error(new DemoException('The server did not start')),
    )->ignore();
    /** @var array{string, string} $addresses */
    $addresses = $up->getFuture()->await($cancellation);

    return [$end, ...$addresses];
}

/** @return string the body; empty for an endless one */
function ask(string $url, string $method = 'GET', string $body = '', string $type = ''): string
{
    $stream = @fopen($url, 'r', false, stream_context_create(['http' => [
        'method' => $method,
        'content' => $body,
        'header' => $type === '' ? [] : ["Content-Type: {$type}"],
        'ignore_errors' => true,
        'timeout' => 30,
    ]]));
    $head = $stream === false ? [] : stream_get_meta_data($stream)['wrapper_data'] ?? [];
    $status = is_array($head) && is_string($head[0] ?? null) ? $head[0] : 'no answer';
    if ($stream === false || preg_match('~^HTTP/1\.1 2\d\d ~', $status) !== 1) {
        throw new DemoException("{$method} {$url}: {$status}");
    }

    return str_ends_with($url, '/events') ? '' : (string) stream_get_contents($stream);
}

/** Returns a request as a command line. */
function curl(string $url, string $method, string $body, string $type): string
{
    $text = escapeshellarg(addcslashes($body, "\n"));

    return match (true) {
        $method === 'GET' => 'curl -N ' . escapeshellarg($url),
        str_contains($body, "\n") => "printf {$text} | curl -H 'Content-Type: {$type}' --data-binary @- {$url}",
        default => "curl -H 'Content-Type: {$type}' -d {$text} {$url}",
    };
}

/** Tries every request that the demonstration shows. */
function check(string $application, string $admin, int $aircraft, string $database): void
{
    foreach ([
        "{$application}/",
        "{$application}/openapi.json",
        "{$admin}/",
        "{$admin}/metrics",
        "{$admin}/healthz",
    ] as $url) {
        ask($url);
    }
    foreach (EXAMPLE_REQUESTS as [, $method, $target, $body, $type]) {
        $lines = substr_count(ask($application . $target, $method, $body, $type), "\n");
        if ($target === '/aircraft/export' && $lines !== $aircraft + 1) {
            throw new DemoException("The export has {$lines} lines for {$aircraft} aircraft");
        }
    }
    if (PostgresConnection::connect($database)->query('SELECT count(*) FROM aircraft')->value() !== $aircraft + 1) {
        throw new DemoException(
            'The table does not have the aircraft that it had before the load, and the one that was imported',
        );
    }
}

try {
    $options = options();
    $isCheck = $options['check'] === true;
    [$listen, $admin] = $isCheck ? ['127.0.0.1:0', '127.0.0.1:0'] : ['127.0.0.1:8085', '127.0.0.1:9085'];
    [$listen, $admin] = [(string) ($options['listen'] ?? $listen), (string) ($options['admin'] ?? $admin)];
    $processes = number($options, 'processes', min(4, (int) (new CommandPool())->statistics()['max']));
    $aircraft = number($options, 'aircraft', 10_000);
    $clients = number($options, 'clients', 30);
    $seconds = number($options, 'seconds', $isCheck ? 1 : 3);
} catch (ExceptionInterface|UnexpectedValueException $bad) {
    fwrite(STDERR, "error: {$bad->getMessage()}; ./demo aircraft --help lists the options\n");
    exit(64);
}
if ($options['help'] === true) {
    echo HELP;
    exit(0);
}

$console = new ConsoleOutput();
$output = $options['json'] === true ? $console->getErrorOutput() : $console;
$warn = static fn(string $line)
    => $console->getErrorOutput()->writeln('<comment>' . OutputFormatter::escape($line) . '</comment>');
$stop = new DeferredCancellation();
$signals = [];
if (function_exists('pcntl_signal')) {
    foreach ([SIGINT, SIGTERM, SIGHUP] as $signal) {
        $signals[] = EventLoop::onSignal($signal, static function () use ($stop, &$signals): void {
            array_map(EventLoop::cancel(...), $signals); // a second signal ends this process at once
            $stop->cancel();
        });
    }
}

/** @throws CancelledException when a signal has arrived while this process was busy */
$heed = static fn() => delay(0.001, cancellation: $stop->getCancellation());

$server = $cluster = null;
$status = 0;
try {
    checkFree('listen', $listen, '127.0.0.1:8090');
    checkFree('admin', $admin, '127.0.0.1:9090');
    $output->writeln('Starting PostgreSQL and the server ...');
    $cluster = TemporaryPostgres::start(['max_connections' => 200]);
    $heed();
    $database = PostgresConnection::connect($cluster->dsn());
    (new Migrations($database))->run();
    (new Transfer($database))->import(Fleet::csv($aircraft));
    /** @var string $version */
    $version = $database->query('SHOW server_version')->value();
    $database->close();
    [$server, $listen, $admin] = serve($cluster->dsn(), $listen, $admin, $processes, $warn, $stop->getCancellation());

    $output->writeln([
        sprintf(
            'PostgreSQL %s has %s aircraft, %d processes serve them.',
            $version,
            number_format($aircraft),
            $processes,
        ),
        '',
        "  page       <info>http://{$listen}/</info>",
        "  OpenAPI    <info>http://{$listen}/openapi.json</info>",
        "  status     <info>http://{$admin}/</info>",
        "  metrics    <info>http://{$admin}/metrics</info>",
        "  database   psql '{$cluster->dsn()}'",
        '',
        sprintf('%d clients create, read, update and delete for %d s.', $clients, $seconds),
    ]);
    $load = new Clients($listen, $clients);
    $progress = null;
    if (stream_isatty(STDERR)) {
        $since = hrtime(true);
        $progress = EventLoop::repeat(0.1, static function () use ($since, $load): void {
            fwrite(
                STDERR,
                sprintf("\r  %.1f s  %s cycles\e[K", (hrtime(true) - $since) / 1e9, number_format($load->cycles())),
            );
        });
    }
    try {
        $load->run($seconds, $stop->getCancellation());
    } finally {
        if ($progress !== null) {
            EventLoop::cancel($progress);
            fwrite(STDERR, "\r\e[K");
        }
    }
    $result = $load->result();
    $output->writeln([
        sprintf(
            '%s cycles, <info>%s per second</info>; p50 %.1f ms, p99 %.1f ms; errors: %d.',
            number_format($result['cycles']),
            number_format($result['cycles_per_second'], 1),
            $result['p50_ms'],
            $result['p99_ms'],
            $result['errors'],
        ),
        '',
        'More requests to try:',
    ]);
    foreach (EXAMPLE_REQUESTS as [$remark, $method, $target, $body, $type]) {
        $output->writeln(OutputFormatter::escape(
            '  ' . curl("http://{$listen}{$target}", $method, $body, $type) . "   # {$remark}",
        ));
    }
    if ($options['json'] === true) {
        echo json_encode(
            $result,
            JSON_THROW_ON_ERROR | JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_PRESERVE_ZERO_FRACTION,
        ), "\n";
    }
    if ($result['errors'] > 0 || $result['cycles'] === 0) {
        throw new DemoException(
            "{$result['errors']} requests of the load failed, the first one with: {$result['first_error']}",
        );
    }
    if ($isCheck) {
        check("http://{$listen}", "http://{$admin}", $aircraft, $cluster->dsn());
        $output->writeln(['', '<info>All of it works.</info>']);
    } else {
        $output->writeln(['', 'Ctrl-C stops all of this and removes the database.']);
        $server->await($stop->getCancellation());

        throw new DemoException('The server ended unexpectedly');
    }
} catch (Throwable $failure) {
    try {
        $heed();
        $console->getErrorOutput()->writeln('<error>error:</error> ' . OutputFormatter::escape($failure->getMessage()));
        $status = 1;
    } catch (CancelledException) {
        $output->writeln(['', 'Stopping ...']);
        $status = $isCheck ? 130 : 0;
    }
}
$stop->cancel();
$server?->catch(static fn() => null)->await();
$cluster?->stop();
exit($status);
