<?php

declare(strict_types=1);

namespace Spindle\Worker;

use Spindle\Worker\Internal\Portable;
use Spindle\Worker\Internal\TaskCode;

/**
 * A task that is bytes, and whose outcome is bytes: for an {@see Executor} that carries tasks further than to processes of
 * this machine. Whoever hands it to a pool there needs to know neither the task's classes nor those of its outcome.
 *
 *     $code = PortableTask::encode($task);                       // where it comes from
 *     $bytes = $pool->submit(new PortableTask($code, null, 1, $id))->await();
 *     $result = PortableOutcome::read($bytes, 1, null);          // where it came from
 *
 * The bytes can be made to run any code: whoever reads them has made sure before whom they are from.
 */
final class PortableTask
{
    /** Closures are signed because the library that carries them wants it; what is carried is to be signed as a whole. */
    private const KEY = 'the signature of the whole counts';

    /** Codes of which the callable is kept: that of a map is the same each time. */
    private const KEPT = 16;

    /** @var array<string, \Closure> */
    private static array $callables = [];

    /**
     * @param string      $code           of {@see encode()}
     * @param string|null $argument       of {@see encodeArgument()}; null for a task that takes none
     * @param int         $attempt        that the task reads in {@see TaskContext::$attempt}
     * @param string|null $idempotencyKey that it reads in {@see TaskContext::$idempotencyKey}
     * @param int|null    $maxResult      bytes that its outcome may have, and each item; null for no limit
     * @param bool        $announced      whether it reports [$idempotencyKey] when it starts; what it tells itself is reported as [$idempotencyKey, string]
     */
    public function __construct(
        private readonly string $code,
        private readonly ?string $argument,
        private readonly int $attempt,
        private readonly ?string $idempotencyKey,
        private readonly bool $announced = false,
        private readonly ?int $maxResult = null,
    ) {}

    /** @throws UnserializableException */
    public static function encode(callable $task): string
    {
        return TaskCode::encode($task, self::KEY);
    }

    /**
     * @param mixed $key of the argument in its input, for the message
     *
     * @throws UnserializableException
     */
    public static function encodeArgument(mixed $argument, mixed $key): string
    {
        return Portable::serialize($argument, 'The argument' . Portable::forKey($key));
    }

    /**
     * Runs the task. It never throws: what the task throws is an outcome as well.
     *
     * @return string|\Generator<int, string, mixed, string> for {@see PortableOutcome::read()}; of a task that is a generator, one
     *                                                        whose items are for {@see PortableOutcome::item()}, and whose result is that
     */
    public function __invoke(): string|\Generator
    {
        $outer = TaskContext::current();
        TaskContext::enter(new TaskContext($this->attempt, $outer->cancellation(...), $this->report($outer), $this->idempotencyKey));
        if ($this->announced) {
            $outer->report([$this->idempotencyKey]);
        }
        $isRead = false;
        try {
            $task = $this->argument === null ? TaskCode::decode($this->code, self::KEY) : $this->kept();
            $argument = $this->argument === null ? null : Portable::unserialize($this->argument, TaskCode::MISSING);
            $isRead = true;
            $result = $this->argument === null ? $task() : $task($argument);

            $outcome = $result instanceof \Generator ? $this->items($result, $outer) : PortableOutcome::returned($result);
        } catch (\Throwable $thrown) {
            $outcome = $isRead ? PortableOutcome::threw($thrown) : PortableOutcome::unreadable($thrown);
        }
        if (\is_string($outcome)) {
            TaskContext::enter($outer); // the next task may be of the same batch

            return $this->limited($outcome);
        }

        return $outcome;
    }

    /**
     * @param \Generator<mixed, mixed, mixed, mixed> $items
     *
     * @return \Generator<int, string, mixed, string>
     */
    private function items(\Generator $items, TaskContext $outer): \Generator
    {
        try {
            foreach ($items as $key => $item) {
                try {
                    $bytes = Portable::serialize([$key, $item], 'The item');
                } catch (UnserializableException $refused) {
                    return PortableOutcome::refused($refused);
                }
                if (\strlen($bytes) > ($this->maxResult ?? \PHP_INT_MAX)) {
                    return PortableOutcome::tooLarge(\strlen($bytes));
                }
                yield $bytes;
            }

            return $this->limited(PortableOutcome::returned($items->getReturn()));
        } catch (\Throwable $thrown) {
            return $this->limited(PortableOutcome::threw($thrown));
        } finally {
            TaskContext::enter($outer);
        }
    }

    private function limited(string $outcome): string
    {
        return \strlen($outcome) > ($this->maxResult ?? \PHP_INT_MAX) ? PortableOutcome::tooLarge(\strlen($outcome)) : $outcome;
    }

    /** @return \Closure(mixed): void */
    private function report(TaskContext $outer): \Closure
    {
        $id = $this->idempotencyKey;

        return static fn(mixed $value) => $outer->report([$id, Portable::serialize($value, 'The report')]);
    }

    private function kept(): \Closure
    {
        if (isset(self::$callables[$this->code])) {
            return self::$callables[$this->code];
        }
        if (\count(self::$callables) >= self::KEPT) {
            self::$callables = [];
        }

        return self::$callables[$this->code] = TaskCode::decode($this->code, self::KEY);
    }
}
