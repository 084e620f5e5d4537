<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Psr\Log\LoggerInterface;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\CommandResult;
use Spindle\Command\HaltPolicy;
use Spindle\Command\RetryPolicy;
use Spindle\Command\StartMethod;
use Spindle\Tests\ReadsErrorLog;
use Spindle\Tests\TidyTestCase;

/** Base class of the tests of command pools: makes pools and runs single commands. */
abstract class CommandPoolTestCase extends TidyTestCase
{
    use ReadsErrorLog;

    abstract protected function start(): StartMethod;

    /** Returns the PHP for the launcher; null for the default. */
    protected function launcherPhp(): ?string
    {
        return null;
    }

    /** Whether the launcher can reset an ignored SIGPIPE and gets a signal for each exit. */
    protected function launcherHandlesSignals(): bool
    {
        return true;
    }

    protected function pool(
        int $concurrency = 4,
        int|RetryPolicy $retries = 0,
        ?HaltPolicy $halt = null,
        float $gracePeriod = 2.0,
        int $lookahead = 256,
        bool $rerunAfterCrash = false,
        ?string $temporaryDirectory = null,
        ?LoggerInterface $logger = null,
    ): CommandPool {
        return new CommandPool($concurrency, $retries, new CommandPoolOptions(
            halt: $halt,
            gracePeriod: $gracePeriod,
            lookahead: $lookahead,
            rerunAfterCrash: $rerunAfterCrash,
            startMethod: $this->start(),
            php: $this->launcherPhp(),
            temporaryDirectory: $temporaryDirectory,
            logger: $logger,
        ));
    }

    protected function execute(Command $command): CommandResult
    {
        return $this->pool(1)->execute($command);
    }

    /** Returns a command that runs PHP code; its arguments start at $argv[1]. */
    protected function php(string $code, string ...$arguments): Command
    {
        return Command::of(\PHP_BINARY, '-n', '-d', 'memory_limit=-1', '-r', $code, '--', ...$arguments);
    }

    /**
     * @param iterable<mixed, CommandResult> $results
     *
     * @return list<string>
     */
    protected static function outputs(iterable $results): array
    {
        $outputs = [];
        foreach ($results as $result) {
            $outputs[] = trim($result->stdout());
        }

        return $outputs;
    }
}
