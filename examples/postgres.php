<?php

declare(strict_types=1);

// PostgreSQL from many fibers: queries that share round trips, a transaction, a stream, COPY, notifications.

use Revolt\EventLoop;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Reconnected;
use Spindle\Postgres\Testing\TemporaryPostgres;
use Spindle\Postgres\Transaction;

use function Amp\async;
use function Amp\Future\await;

require __DIR__ . '/autoload.php';

$server = TemporaryPostgres::start();               // a temporary server, removed at the end
$db = new PostgresPool($server->dsn(), maxConnections: 4);
$db->executeScript('create table items (id int primary key, price numeric not null)');

// COPY reads any iterable.
$items = (static function (): Generator {
    for ($id = 1; $id <= 10_000; ++$id) {
        yield [$id, sprintf('%d.%02d', $id % 97, $id % 100)];
    }
})();
printf("%d copied\n", $db->copyFrom('copy items (id, price) from stdin', $items));

// 64 fibers send 1,000 queries over 4 connections. Each fiber waits only for its own result.
$ids = range(1, 1_000);
$found = 0;
$ask = static function () use ($db, &$ids, &$found): void {
    while (($id = array_pop($ids)) !== null) {
        $item = $db->query('select id, price from items where id = $1', [$id])->one();
        $found += $item !== null && $item['id'] === $id ? 1 : 0;
    }
};
await(array_map(static fn(int $fiber) => async($ask), range(1, 64)));
printf("%d found over %d connections\n", $found, $db->statistics()['opened_total']);

// A transaction applies all changes or none: an exception rolls it back.
try {
    $db->transaction(static function (Transaction $tx): void {
        $tx->execute('delete from items where id <= $1', [5_000]);
        $tx->execute('insert into items values ($1, $2)', [9_999, '1.00']);
    });
} catch (PostgresException $failure) {
    printf("%s, and %d items are left\n", $failure::class, $db->execute('select from items'));
}

// A stream fetches rows on demand, in constant memory.
$dear = 0;
foreach ($db->stream('select price from items') as $row) {
    $dear += $row['price'] > 90 ? 1 : 0;
}
printf("%d cost more than 90\n", $dear);

// Notifications of other sessions. The timer sends until one is received.
$bell = EventLoop::repeat(0.05, static function () use ($db): void {
    $db->query('select pg_notify($1, $2)', ['items', 'sold out']);
});
foreach ($db->listen('items') as $told) {
    if (!$told instanceof Reconnected) {
        printf("heard: %s\n", $told->payload);
        break;
    }
}
EventLoop::cancel($bell);
