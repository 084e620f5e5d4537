<?php

declare(strict_types=1);

// Runs commands from several fibers. Each fiber waits only for its own command.

use Amp\TimeoutCancellation;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;

use function Amp\async;
use function Amp\Future\await;

require __DIR__ . '/autoload.php';

function here(string $line): Command
{
    return Command::shell($line)->withWorkingDirectory(dirname(__DIR__));
}

$pool = new CommandPool(concurrency: 8);

$sizes = await([
    'lines' => async(fn(): string => trim($pool->execute(here('wc -l < composer.json'))->orThrow()->stdout())),
    'bytes' => async(fn(): string => trim($pool->execute(here('wc -c < composer.json'))->orThrow()->stdout())),
]);
printf(
    "composer.json has lines: %s, bytes: %s\n",
    is_numeric($sizes['lines']) ? 'yes' : 'no',
    is_numeric($sizes['bytes']) ? 'yes' : 'no',
);

// A cancellation ends the command and all processes that it started.
try {
    $pool->execute(Command::shell('sleep 60 & sleep 60'), new TimeoutCancellation(0.1));
} catch (Amp\CancelledException) {
    echo "ended after a tenth of a second\n";
}

// Input and output are streamed.
$words = (static function (): Generator {
    foreach (['spindle', 'bobbin', 'distaff'] as $word) {
        yield "{$word}\n";
    }
})();
$pool->execute(Command::of('sort')->withInput($words)->withStdout(static function (string $bytes): void {
    echo $bytes;
}));
