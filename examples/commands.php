<?php

declare(strict_types=1);

// Runs a stream of commands. Results arrive as they complete, with the keys of their commands.

use Spindle\Command\Command;
use Spindle\Command\CommandPool;

require __DIR__ . '/autoload.php';

/** @return Generator<string, Command> */
function checksums(string $pattern): Generator
{
    foreach ((array) glob($pattern) as $path) {
        yield basename((string) $path) => Command::of('sha256sum', '--', (string) $path)->withTimeout(10);
    }
}

$pool = new CommandPool(concurrency: 4, retries: 1);
$results = $pool->run(checksums(__DIR__ . '/*.php'));
foreach ($results as $name => $result) {
    if ($result->succeeded()) {
        printf("%s  %s\n", substr($result->stdout(), 0, 12), $name);
    } else {
        fwrite(STDERR, "{$name}: {$result->describe()}\n");
    }
}
printf("%d succeeded, %d failed\n", $results->getReturn()->succeeded, $results->getReturn()->failed);
