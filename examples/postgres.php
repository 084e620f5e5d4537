<?php

declare(strict_types=1);

// PostgreSQL from many fibers: queries that share round trips, a transaction, a stream, COPY, notifications.

use Revolt\EventLoop;
use Spindle\Postgres\NotificationGap;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\Testing\TemporaryCluster;
use Spindle\Postgres\Transaction;

use function Amp\async;
use function Amp\Future\await;

require __DIR__ . '/../vendor/autoload.php';

$cluster = TemporaryCluster::start();               // a server of its own, which is gone at the end
$db = new PostgresPool($cluster->dsn(), maxConnections: 4);
$db->executeScript('create table items (id int primary key, price numeric not null)');

// COPY, from any iterable.
$items = (static function (): Generator {
    for ($id = 1; $id <= 10_000; ++$id) {
        yield [$id, sprintf('%d.%02d', $id % 97, $id % 100)];
    }
})();
printf("%d copied\n", $db->copyFrom('copy items (id, price) from stdin', $items));

// 1,000 queries by 64 fibers over 4 connections. Each fiber waits for its own answer only.
$ids = range(1, 1_000);
$found = 0;
$ask = static function () use ($db, &$ids, &$found): void {
    while (($id = array_pop($ids)) !== null) {
        $item = $db->query('select id, price from items where id = $1', [$id])->one();
        $found += $item !== null && $item['id'] === $id ? 1 : 0;
    }
};
await(array_map(static fn(int $fiber) => async($ask), range(1, 64)));
printf("%d found over %d connections\n", $found, $db->stats()->opened);

// Both or neither. What the function throws rolls back; so does this one, as a whole.
try {
    $db->transaction(static function (Transaction $tx): never {
        $tx->execute('update items set price = price * 2');
        throw new DomainException('too dear');
    });
} catch (DomainException $reason) {
    printf("%s: the first still costs %s\n", $reason->getMessage(), $db->query('select price from items where id = 1')->value());
}

// Rows as they are taken, in constant memory.
$sum = 0;
foreach ($db->stream('select id from items') as $row) {
    $sum += $row['id'];
}
printf("the ids sum up to %d\n", $sum);

// What others tell. Somebody rings until he is heard.
$bell = EventLoop::repeat(0.05, static function () use ($db): void {
    $db->query('select pg_notify($1, $2)', ['items', 'sold out']);
});
foreach ($db->listen('items') as $told) {
    if (!$told instanceof NotificationGap) {
        printf("heard: %s\n", $told->payload);
        break;
    }
}
EventLoop::cancel($bell);
