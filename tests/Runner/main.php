<?php

declare(strict_types=1);

namespace Spindle\Tests\Runner;

// Runs all test classes, several at once: php tests/Runner/main.php [--full] [--shards N] [--slowest]
// [--repeat-failed] [PATH...]

require __DIR__ . '/../../vendor/autoload.php';

try {
    /** @var non-empty-list<string> $argv */
    $options = Options::fromArguments(\array_slice($argv, 1));
    exit((new TestRun($options, Screen::onStandardOutput()))->run());
} catch (RunnerException $failure) {
    fwrite(STDERR, "error: {$failure->getMessage()}\n");
    exit(RunnerException::EXIT_STATUS);
}
