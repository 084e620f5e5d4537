<?php

declare(strict_types=1);

/* Opens persistent connections to the DSN that it is given, and tells what it finds. */

use Amp\CancelledException;
use Amp\TimeoutCancellation;
use Spindle\Postgres\Internal\Session;
use Spindle\Postgres\Internal\SessionFactory;
use Spindle\Postgres\PostgresDriver;
use Spindle\Postgres\PostgresOptions;

use function Amp\delay;

require dirname(__DIR__, 3) . '/vendor/autoload.php';

$options = PostgresOptions::of($argv[1])->with(['driver' => PostgresDriver::ExtPgsql]);
$open = static fn(): Session
    => (new SessionFactory($options->with(['persistent' => true, 'settings' => ['my.own' => 'x']])))->open(null);
$outside = (new SessionFactory($options))->open(null);
$found = [];

[$one, $other] = [$open(), $open()];
$pid = $one->backendPid();
$found['two at once are two'] = $pid !== $other->backendPid();
$one->script("SET statement_timeout TO '7s'; LISTEN a; CREATE TEMP TABLE t (i int); SELECT pg_advisory_lock(7)");
$one->query('SELECT $1::text', ['a']);
$one->close();

$one = $open();
$found['found again'] = $one->backendPid() === $pid;
$state = "SELECT current_setting('statement_timeout'), current_setting('my.own'), to_regclass('t')::text, "
    . "count(*), $1::text FROM pg_locks WHERE locktype = 'advisory'";
$found['as at first'] = $one->query($state, ['a'])->lists();
$one->query('BEGIN');
$one->close();
$found['its transaction'] = $outside->query(
    'SELECT state FROM pg_stat_activity WHERE pid = $1',
    [$pid],
)->value() === 'idle'
    ? 'rolled back'
    : 'open';

$outside->query('SELECT pg_terminate_backend($1)', [$pid]);
while ($outside->query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [$pid])->value() === 1) {
    delay(0.001);
}
$one = $open();
$found['after it was lost'] = $one->query('SELECT 1')->value() === 1 && $one->backendPid() !== $pid
    ? 'another'
    : 'lost';

$pid = $one->backendPid();
try {
    $one->query('SELECT pg_sleep(1000)', [], new TimeoutCancellation(0.01));
} catch (CancelledException) {
}
$start = hrtime(true);
$one->close();
$one = $open();
$found['after it was closed while busy'] = $one->backendPid() === $pid
    ? 'the same'
    : 'another, ' . ((hrtime(true) - $start) / 1e9 < 1 ? 'at once' : 'late');

echo json_encode($found, JSON_THROW_ON_ERROR);
