<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Psr\Log\LoggerInterface;
use Spindle\Internal\NumberRange;

/**
 * What a pool can be told beyond its size and retries. The defaults need no thought.
 */
final class WorkerPoolOptions
{
    /** In seconds. A worker that is too old before it was given a task would be replaced again and again. */
    private const MIN_AGE = 0.001;

    /**
     * @param WorkerContext         $context       what a worker is
     * @param float|null            $timeout       seconds that a task may run; null for no limit
     * @param float                 $grace         seconds between TERM and KILL for a worker whose task is ended
     * @param float                 $idleTimeout   seconds after which a worker with nothing to do ends; INF for never
     * @param int|null              $maxTasks      tasks after which a worker is replaced; null for no limit
     * @param float|null            $maxAge        seconds after which a worker is replaced; null for no limit
     * @param int|null              $maxGrowth     bytes by which its memory may have grown since it was ready, between
     *                                             tasks, before it is replaced; null for no limit
     * @param string|null           $memoryLimit   memory_limit of each worker, such as "256M"; null for this process's own
     * @param string|null           $bootstrap     a PHP file that each worker loads before its first task, after the autoloaders
     *                                             of this process, which are found by themselves
     * @param \Closure|null         $initialize    called in each worker before its first task; travels as a task does
     * @param float                 $startTimeout  seconds within which a worker must be ready
     * @param (\Closure(string, bool): void)|null $onOutput gets what tasks print, and whether that was to standard error;
     *                                             null for this process's own standard output and error
     * @param (\Closure(mixed): void)|null $onReport gets what tasks tell by {@see TaskContext::report()}
     * @param string|null           $php           the PHP command-line binary for workers; null finds it
     * @param LoggerInterface|null  $logger        gets each step at debug level, never arguments, results or output
     * @param int|null              $maxResult     bytes of a result, item, report or exception as it is sent; a larger one
     *                                             is refused in the worker. Null for a quarter of this process's
     *                                             memory_limit, or 1 GiB where it has none
     * @param bool                  $restoreState  whether a worker restores its working directory, php.ini settings,
     *                                             locale, time zone, umask and environment after each task, as they
     *                                             were before the first one; takes about 15 µs for each task
     * @param ResultBudget|null     $budget        bounds the bytes of large results that are in this process at once;
     *                                             null for no bound
     *
     * @throws \ValueError when a number is out of its range
     */
    public function __construct(
        public readonly WorkerContext $context = WorkerContext::Process,
        public readonly ?float $timeout = null,
        public readonly float $grace = 1.0,
        public readonly float $idleTimeout = 60.0,
        public readonly ?int $maxTasks = null,
        public readonly ?float $maxAge = null,
        public readonly ?int $maxGrowth = null,
        public readonly ?string $memoryLimit = null,
        public readonly ?string $bootstrap = null,
        public readonly ?\Closure $initialize = null,
        public readonly float $startTimeout = 30.0,
        public readonly ?\Closure $onOutput = null,
        public readonly ?\Closure $onReport = null,
        public readonly ?string $php = null,
        public readonly ?LoggerInterface $logger = null,
        public readonly ?int $maxResult = null,
        public readonly bool $restoreState = false,
        public readonly ?ResultBudget $budget = null,
    ) {
        $endless = ['idleTimeout' => $idleTimeout, 'maxAge' => $maxAge];
        foreach (['timeout' => $timeout, 'startTimeout' => $startTimeout, ...array_diff($endless, [\INF])] as $name => $seconds) {
            if ($seconds !== null) {
                NumberRange::positiveSeconds("The option {$name}", $seconds);
            }
        }
        if ($maxAge !== null && $maxAge < self::MIN_AGE) {
            throw new \ValueError('The option maxAge must be ' . self::MIN_AGE . " or more seconds, not {$maxAge}");
        }
        NumberRange::seconds('The grace', $grace);
        foreach (['maxTasks' => $maxTasks, 'maxGrowth' => $maxGrowth, 'maxResult' => $maxResult] as $name => $number) {
            if ($number !== null && $number < 1) {
                throw new \ValueError("The option {$name} must be 1 or more, not {$number}");
            }
        }
        if ($bootstrap !== null && !is_file($bootstrap)) {
            throw new \ValueError("The bootstrap file '{$bootstrap}' is not there");
        }
    }

    /**
     * The same with others in place of some.
     *
     * @param mixed ...$changed by name
     *
     * @throws \ValueError
     */
    public function with(mixed ...$changed): self
    {
        return new self(...[...get_object_vars($this), ...$changed]); // @phpstan-ignore argument.type (PHP checks them)
    }
}
