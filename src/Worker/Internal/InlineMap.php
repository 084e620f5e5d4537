<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Amp\Cancellation;
use Spindle\Internal\Async\Condition;
use Spindle\Internal\Async\FiberSwitch;
use Spindle\Internal\Async\InputConsumer;
use Spindle\Internal\Async\InputPump;
use Spindle\Internal\OneWayGenerator;
use Spindle\Internal\UnreadResults;
use Spindle\Worker\ExecutorClosedException;
use Spindle\Worker\MapOutcome;

/** Runs one call of map() in this process. Reads a value, runs its task, yields the result, reads the next value. */
final class InlineMap implements InputConsumer
{
    private ?\Closure $task = null;

    private readonly InputPump $input;

    private bool $isValueNeeded = false;

    /** @var array{mixed, mixed}|null key and value for the next task */
    private ?array $next = null;

    private readonly Condition $changed;

    /**
     * @param iterable<mixed, mixed>       $input
     * @param string                       $code      from {@see TaskCode::encode()}
     * @param (\Closure(mixed): mixed)|null $onReport
     */
    public function __construct(
        private readonly InlineActivity $activity,
        iterable $input,
        private readonly string $code,
        private readonly string $signatureKey,
        private readonly ?\Closure $onReport,
        private readonly bool $keepsFailures,
    ) {
        $this->input = new InputPump($this, $input);
        $this->changed = new Condition();
    }

    /** @return \Generator<mixed, mixed> */
    public function results(?Cancellation $cancellation, UnreadResults $unread): \Generator
    {
        $unread->begin();
        try {
            $cancellation?->throwIfRequested();
            FiberSwitch::ensurePossible();
            $this->activity->beginMap($this);
            while (($next = $this->next($cancellation)) !== null) {
                [$key, $value] = $next;
                $argument = ValueSerializer::serialize($value, 'The argument' . ValueSerializer::keySuffix($key));
                $next = $value = null;
                $work = fn(): mixed => $this->task()(ValueSerializer::unserialize($argument, TaskCode::MISSING));
                $result = fn(): mixed => (new InlineTask($this->activity, $work, $key, $this->onReport, $cancellation))
                    ->start()->await();
                yield $key => $this->keepsFailures ? MapOutcome::of($result) : $result();
                yield from OneWayGenerator::release();
                $cancellation?->throwIfRequested();
            }
        } finally {
            $this->activity->endMap($this);
            $this->input->release();
        }
    }

    /** Stops reading. After the running task, map() throws, unless the input is an array that was read completely. */
    public function close(): void
    {
        $this->input->close(ExecutorClosedException::closedBeforeInputEnd());
        $this->changed->notify();
    }

    /** Stops reading. map() throws `$reason` instead of reading its next value. */
    public function kill(ExecutorClosedException $reason): void
    {
        $this->next = null;
        $this->input->fail($reason);
        $this->changed->notify();
    }

    public function room(): int
    {
        return $this->isValueNeeded ? 1 : 0;
    }

    public function onValues(array $keys, array $values): void
    {
        $this->next = [$keys[0], $values[0]];
        $this->isValueNeeded = false;
    }

    public function onSuspended(): void {}

    public function onPaused(): void
    {
        $this->changed->notify();
    }

    private function task(): \Closure
    {
        return $this->task ??= TaskCode::decode($this->code, $this->signatureKey);
    }

    /** @return array{mixed, mixed}|null key and value; null at the end of the input */
    private function next(?Cancellation $cancellation): ?array
    {
        $this->isValueNeeded = true;
        $this->input->pullSoon();
        while ($this->next === null && !$this->input->isOver) {
            $this->changed->wait($cancellation);
        }
        $next = $this->next;
        $this->next = null;

        return $next === null && $this->input->failure !== null ? throw $this->input->failure : $next;
    }
}
