<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;
use Spindle\Internal\WorkingDirectory;

/** Options of a {@see WorkerPool} besides its size and retries. */
final class WorkerPoolOptions
{
    /** Smallest maxLifetime, in seconds. With less, workers could expire before their first tasks, again and again. */
    private const MIN_LIFETIME_SECONDS = 0.001;

    /** Smallest memoryLimit, in bytes. PHP and Composer's autoloader alone need half of this number. */
    private const MIN_MEMORY_LIMIT = 8 << 20;

    /** Absolute path of the bootstrap file, because the working directory may change before a worker loads the file. */
    public readonly ?string $bootstrap;

    /**
     * @param WorkerContext $context how workers run
     * @param float|null $timeout seconds that a task may run; null for no limit
     * @param float $gracePeriod seconds between SIGTERM and SIGKILL when the pool ends a worker. A task continues in
     *     this time only if it has called {@see TaskContext::cancellation()}
     * @param float $idleTimeout seconds without a task after which a worker ends; INF for never
     * @param int|null $maxTasks tasks after which a worker is replaced; null for no limit
     * @param float|null $maxLifetime seconds after which a worker is replaced; null for no limit
     * @param int|null $maxMemoryGrowthBytes bytes by which a worker's memory may grow before the worker is replaced;
     *     measured between tasks; null for no limit
     * @param string|null $memoryLimit memory_limit of a worker, "8M" or more, or "-1" for none; null for the
     *     memory_limit of this process
     * @param string|null $bootstrap PHP file that each worker loads before its first task. Before this file, the worker
     *     always loads the Composer autoloaders of this process
     * @param \Closure|null $initialize called in each worker before its first task; serialized like a task
     * @param float $startTimeout seconds within which a worker must be ready
     * @param (\Closure(string, bool): mixed)|null $onOutput receives each piece of a task's output, and whether the
     *     piece came from standard error; null to print the output in this process
     * @param (\Closure(mixed): mixed)|null $onReport receives the values of {@see TaskContext::report()}. Exceptions of
     *     this function and of $onOutput go to the error handler of the event loop, not to a task
     * @param string|null $php PHP command-line binary for workers; null to search for a binary
     * @param LoggerInterface|null $logger gets debug messages about starts and ends of workers, without data of tasks
     * @param int|null $maxResultBytes maximum bytes of a serialized result, item of a generator, report or exception.
     *     An exception that exceeds both this limit and 256 KiB is shortened. A result that is null, a number or a
     *     boolean has no limit. Null for a quarter of the memory_limit of this process; 1 GiB if there is no limit
     * @param bool $restoreState whether a worker restores its state after each task: the working directory, php.ini
     *     settings, locale, time zone, umask and environment that the worker had before its first task. This costs
     *     about 15 µs per task
     * @param ResultBudget|null $resultBudget limits the bytes of large results that arrive at one time; null for none
     *
     * @throws \ValueError when a number or memoryLimit is out of its range, or the bootstrap file does not exist
     */
    public function __construct(
        public readonly WorkerContext $context = WorkerContext::Process,
        public readonly ?float $timeout = null,
        public readonly float $gracePeriod = 1.0,
        public readonly float $idleTimeout = 60.0,
        public readonly ?int $maxTasks = null,
        public readonly ?float $maxLifetime = null,
        public readonly ?int $maxMemoryGrowthBytes = null,
        public readonly ?string $memoryLimit = null,
        ?string $bootstrap = null,
        public readonly ?\Closure $initialize = null,
        public readonly float $startTimeout = 30.0,
        public readonly ?\Closure $onOutput = null,
        public readonly ?\Closure $onReport = null,
        public readonly ?string $php = null,
        public readonly ?LoggerInterface $logger = null,
        public readonly ?int $maxResultBytes = null,
        public readonly bool $restoreState = false,
        public readonly ?ResultBudget $resultBudget = null,
    ) {
        $this->checkSeconds();
        NumberRange::checkPositiveCounts([
            'maxTasks' => $maxTasks,
            'maxMemoryGrowthBytes' => $maxMemoryGrowthBytes,
            'maxResultBytes' => $maxResultBytes,
        ]);
        if ($bootstrap !== null && (str_contains($bootstrap, "\0") || !is_file($bootstrap))) {
            throw new \ValueError("The bootstrap '{$bootstrap}' is not an existing file");
        }
        $this->bootstrap = $bootstrap === null ? null : self::absolute($bootstrap);
        if ($memoryLimit !== null && !self::isMemoryLimit($memoryLimit)) {
            throw new \ValueError(
                'The option memoryLimit must be a number of bytes, at least 8M, optionally with K, M or G, or -1 for no'
                    . ' limit, not ' . var_export($memoryLimit, true),
            );
        }
    }

    /**
     * Returns a copy with some options replaced.
     *
     * @param mixed ...$changed options by name
     *
     * @throws \ValueError
     */
    public function with(mixed ...$changed): self
    {
        return new self(...[...get_object_vars($this), ...$changed]); // @phpstan-ignore argument.type (PHP checks them)
    }

    private function checkSeconds(): void
    {
        $this->timeout === \INF && throw new \ValueError('The option timeout is null for no limit, and not INF');
        $endless = ['idleTimeout' => $this->idleTimeout, 'maxLifetime' => $this->maxLifetime];
        $limits = ['timeout' => $this->timeout, 'startTimeout' => $this->startTimeout, ...array_diff($endless, [\INF])];
        foreach (array_filter($limits, static fn(?float $seconds): bool => $seconds !== null) as $name => $seconds) {
            NumberRange::checkPositiveSeconds("The option {$name}", $seconds);
        }
        if ($this->maxLifetime !== null && $this->maxLifetime < self::MIN_LIFETIME_SECONDS) {
            $least = self::MIN_LIFETIME_SECONDS;

            throw new \ValueError("The option maxLifetime must be {$least} or more seconds, not {$this->maxLifetime}");
        }
        NumberRange::checkSeconds('The grace period', $this->gracePeriod);
    }

    private static function absolute(string $path): string
    {
        if (WorkingDirectory::isAbsolute($path)) {
            return $path;
        }
        $current = getcwd();

        return $current !== false ? "{$current}/{$path}" : throw new \ValueError(
            "The bootstrap '{$path}' is a relative path, and the working directory of this process no longer exists",
        );
    }

    private static function isMemoryLimit(string $limit): bool
    {
        return $limit === '-1'
            || preg_match('/^[1-9](\d{0,17}|\d{0,8}[KMG])$/iD', $limit) === 1
                && ini_parse_quantity($limit) >= self::MIN_MEMORY_LIMIT;
    }
}
