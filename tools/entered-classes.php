<?php

declare(strict_types=1);

/*
 * Counts the classes of Spindle that one call enters in its process: entered-classes.php [--list] [ROOT].
 *
 * A call that enters fewer classes is easier to follow. Each call was made before, so that nothing is started. ROOT is
 * another checkout. --list names the classes with their numbers of calls. PostgreSQL and Redis must be installed.
 */

use Revolt\EventLoop;
use Spindle\Bench\Http\PrivateDirectory;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Http\HttpServer;
use Spindle\Http\Response;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Remote\Agent;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\SigningKeys;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\Architecture\EnteredClasses;
use Spindle\Worker\WorkerPool;

require __DIR__ . '/../vendor/autoload.php';

/** Prints the classes that the second of two equal calls enters. */
function report(string $title, Closure $call, bool $isList): void
{
    $call();
    $calls = EnteredClasses::during($call);
    printf("%6d %s\n", count($calls), $title);
    foreach ($isList ? $calls : [] as $class => $count) {
        echo "         {$class}: {$count}\n";
    }
}

/** @var non-empty-list<string> $argv */
$arguments = array_slice($argv, 1);
$isList = in_array('--list', $arguments, true);
$root = array_values(array_diff($arguments, ['--list']))[0] ?? dirname(__DIR__);
$directory = new PrivateDirectory();
$copy = "{$directory->path}/src";
EnteredClasses::copy("{$root}/src", $copy);
EnteredClasses::load($copy);

$secrets = [bin2hex(random_bytes(32))];
$redis = TemporaryRedis::start();
$agent = pcntl_fork();
if ($agent === 0) {
    $forked = new Agent(new RedisBroker($redis->url()), 'tasks', 1, new SigningKeys($secrets));
    EventLoop::unreference(EventLoop::onSignal(SIGTERM, static fn() => $forked->close()));
    $forked->run();
    posix_kill((int) getmypid(), SIGKILL); // the server and the files belong to the parent
}

try {
    $commands = new CommandPool();
    report('CommandPool::execute()', static fn() => $commands->execute(Command::of('true')), $isList);
    $commands->kill(); // otherwise the heartbeat of its launcher would be counted in later calls

    $workers = new WorkerPool(1);
    report('WorkerPool::submit()', static fn() => $workers->submit(static fn(): int => 1)->await(), $isList);

    $cluster = TemporaryPostgres::start();
    $pool = new PostgresPool($cluster->dsn(), maxConnections: 1);
    report('PostgresPool::query()', static fn() => $pool->query('SELECT $1::int', [1])->value(), $isList);

    $server = new HttpServer(static fn(): Response => Response::text('hello'));
    [$address] = $server->start('127.0.0.1:0');
    $client = Amp\Socket\connect($address);
    report('a request of HttpServer', static function () use ($client): void {
        $client->write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        $client->read();
    }, $isList);
    $client->close();
    $server->close();

    $remote = new RemoteExecutor(new RedisBroker($redis->url()), 'tasks', new SigningKeys($secrets));
    report('RemoteExecutor::submit()', static fn() => $remote->submit(static fn(): int => 1)->await(), $isList);
} finally {
    posix_kill($agent, SIGTERM);
    pcntl_waitpid($agent, $status);
}
