<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Worker\Internal\Process\WorkerBoot;
use Spindle\Worker\Internal\TaskCode;
use Spindle\Worker\Internal\ValueSerializer;

/**
 * A task whose code, argument and outcome are bytes. An {@see Executor} that runs tasks on other machines sends the
 * bytes. On the other machine, a process submits the task to a pool. That process does not need the task's classes.
 *
 *     $code = PortableTask::encode($task);                                       // in the caller
 *     $bytes = $pool->submit(new PortableTask($code, null, 1, $id))->await();    // on the other machine
 *     $result = PortableOutcome::read($bytes, 1, null);                          // in the caller
 *
 * Warning: the bytes can run any code. Verify their sender before you decode them.
 */
final class PortableTask
{
    /** Bytes that an exception may have even if `$maxResultBytes` is smaller. */
    public const MIN_EXCEPTION_BYTES = 0x1_0000;

    /** Key with which {@see TaskCode} signs closures. Not secret, because the sender signs all bytes of the task. */
    private const SIGNATURE_KEY = 'the signature of the whole counts';

    /** Bytes of the kind (such as result or exception) at the start of an encoded outcome. The value follows. */
    private const KIND_BYTES = 1;

    private const LARGE_OUTCOME_BYTES = 1 << 15;

    /** Maximum cached callables. The cache exists because all tasks of a map() call have the same code. */
    private const MAX_CACHED_CALLABLES = 16;

    /** @var array<string, \Closure> callables that several tasks may share ({@see mayShare()}), by code */
    private static array $callables = [];

    /**
     * @param string      $code           from {@see encode()}
     * @param string|null $argument       from {@see encodeArgument()}; null for a task without an argument
     * @param int         $attempt        value of {@see TaskContext::$attempt} in the task
     * @param string|null $idempotencyKey value of {@see TaskContext::$idempotencyKey} in the task
     * @param bool        $announced      whether the pool's $onReport receives [$idempotencyKey] when the task starts,
     *                                    [$idempotencyKey, null] before a large outcome, and [$idempotencyKey, N]
     *                                    before a large item, if N items precede it. Both may arrive much later.
     *                                    Reports by the task always arrive as [$idempotencyKey, serialized value]
     * @param int|null    $maxResultBytes size limit of the encoded value and of each item, in bytes; null for no limit.
     *                                    An exception is shortened if it exceeds both this and MIN_EXCEPTION_BYTES
     */
    public function __construct(
        private readonly string $code,
        private readonly ?string $argument,
        private readonly int $attempt,
        private readonly ?string $idempotencyKey,
        private readonly bool $announced = false,
        private readonly ?int $maxResultBytes = null,
    ) {}

    /** @throws UnserializableException */
    public static function encode(callable $task): string
    {
        return TaskCode::encode($task, self::SIGNATURE_KEY);
    }

    /** Returns the name of an encoded callable, or the file and line of a closure, for logs. Decodes no value. */
    public static function name(string $code): string
    {
        return TaskCode::name($code);
    }

    /** Returns whether this process is a worker. The workers of an agent do not have its secrets. */
    public static function isInWorker(): bool
    {
        return WorkerBoot::depth() > 0;
    }

    /**
     * @param mixed $key key of the argument in the input of map(), for the error message
     *
     * @throws UnserializableException
     */
    public static function encodeArgument(mixed $argument, mixed $key): string
    {
        return ValueSerializer::serialize($argument, 'The argument' . ValueSerializer::keySuffix($key));
    }

    /**
     * Runs the task. If the task throws, returns the exception as the outcome.
     *
     * @return string|\Generator<int, string, mixed, string> outcome for {@see PortableOutcome::read()}. For a generator
     *     task, a generator that yields items for {@see PortableOutcome::item()} and returns the outcome
     */
    public function __invoke(): string|\Generator
    {
        $outer = TaskContext::current();
        $fiber = TaskContext::fiber();
        $context = new TaskContext(
            $this->attempt,
            $outer->cancellation(...),
            $this->report($outer),
            $this->idempotencyKey,
        );
        TaskContext::enter($context, $fiber);
        if ($this->announced) {
            $outer->report([$this->idempotencyKey]);
        }
        $isRead = false;
        try {
            $task = $this->callable();
            $argument = $this->argument === null
                ? null
                : ValueSerializer::unserialize($this->argument, TaskCode::MISSING);
            $isRead = true;
            $result = $this->argument === null ? $task() : $task($argument);

            $outcome = $result instanceof \Generator
                ? $this->items($result, $outer, $fiber)
                : PortableOutcome::returned($result);
        } catch (\Throwable $thrown) {
            $maxBytes = $this->maxExceptionBytes();
            $outcome = $isRead
                ? PortableOutcome::threw($thrown, $maxBytes)
                : PortableOutcome::unreadable($thrown, $maxBytes);
        }
        if (\is_string($outcome)) {
            TaskContext::enter($outer, $fiber); // the next task of the same batch must not inherit this context

            $outcome = $this->limited($outcome);
            $this->announce($outer, $outcome, null);
        }

        return $outcome;
    }

    /**
     * @param \Generator<mixed, mixed, mixed, mixed>  $items
     * @param \Fiber<mixed, mixed, mixed, mixed>|null $fiber see {@see TaskContext::enter()}
     *
     * @return \Generator<int, string, mixed, string>
     */
    private function items(\Generator $items, TaskContext $outer, ?\Fiber $fiber): \Generator
    {
        $count = 0;
        try {
            foreach ($items as $key => $item) {
                try {
                    $bytes = ValueSerializer::serialize([$key, $item], 'The item');
                } catch (UnserializableException $refused) {
                    return PortableOutcome::refused($refused);
                }
                if (\strlen($bytes) > ($this->maxResultBytes ?? \PHP_INT_MAX)) {
                    return PortableOutcome::tooLarge(\strlen($bytes));
                }
                $this->announce($outer, $bytes, $count++);
                yield $bytes;
            }
            $outcome = $this->limited(PortableOutcome::returned($items->getReturn()));
            $this->announce($outer, $outcome, null);

            return $outcome;
        } catch (\Throwable $thrown) {
            return PortableOutcome::threw($thrown, $this->maxExceptionBytes());
        } finally {
            TaskContext::enter($outer, $fiber);
        }
    }

    /** Reports that a large outcome or item follows. A pool with a {@see ResultBudget} may read this value later. */
    private function announce(TaskContext $outer, string $bytes, ?int $itemNumber): void
    {
        if ($this->announced && \strlen($bytes) > self::LARGE_OUTCOME_BYTES) {
            $outer->report([$this->idempotencyKey, $itemNumber]);
        }
    }

    private function limited(string $outcome): string
    {
        $size = \strlen($outcome) - self::KIND_BYTES;

        return PortableOutcome::isSuccess($outcome) && $size > ($this->maxResultBytes ?? \PHP_INT_MAX)
            ? PortableOutcome::tooLarge($size)
            : $outcome;
    }

    private function maxExceptionBytes(): int
    {
        return max(self::MIN_EXCEPTION_BYTES, $this->maxResultBytes ?? \PHP_INT_MAX);
    }

    /** @return \Closure(mixed): void */
    private function report(TaskContext $outer): \Closure
    {
        $id = $this->idempotencyKey;

        return static fn(mixed $value) => $outer->report([$id, ValueSerializer::serialize($value, 'The report')]);
    }

    private function callable(): \Closure
    {
        if (isset(self::$callables[$this->code])) {
            return self::$callables[$this->code];
        }
        $callable = TaskCode::decode($this->code, self::SIGNATURE_KEY);
        if (self::mayShare($callable)) {
            self::$callables = \count(self::$callables) < self::MAX_CACHED_CALLABLES ? self::$callables : [];
            self::$callables[$this->code] = $callable;
        }

        return $callable;
    }

    /**
     * Returns whether tasks of different callers may share a callable. A task could leave data for a task of another
     * caller in an object, captured variables or a closure's static variables. So the callable must have none of these.
     */
    private static function mayShare(\Closure $callable): bool
    {
        $function = new \ReflectionFunction($callable);

        return $function->getClosureThis() === null
            && (!$function->isAnonymous() || $function->getStaticVariables() === []);
    }
}
