<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Remote;

use Random\Randomizer;
use Spindle\Remote\JobLostException;
use Spindle\Remote\ResultTooLargeException;
use Spindle\Worker\TaskContext;
use Spindle\Worker\TaskFailedException;
use Spindle\Worker\UnserializableException;
use Spindle\Worker\WorkerCrashedException;

/** A task with a random behaviour, and a check whether an outcome is possible for this behaviour. */
final readonly class RandomTask
{
    public const MAX_RESULT_BYTES = 100_000;
    public const ATTEMPTS = 2;

    private const KINDS = ['string', 'array', 'throw', 'recover', 'exit', 'stream', 'generator', 'generator'];

    private const SIZES = [
        0,
        1,
        self::MAX_RESULT_BYTES - 1,
        self::MAX_RESULT_BYTES,
        self::MAX_RESULT_BYTES + 1,
        65_536,
        10 * self::MAX_RESULT_BYTES,
    ];

    private function __construct(
        private string $kind,
        private int $size,
        private int $number,
        private int $items,
        private int $failsAt,
        private int $microseconds,
    ) {}

    /** @param bool $isShort whether a generator yields so few items that the task ends without a reader */
    public static function any(Randomizer $random, int $number, bool $isShort = false): self
    {
        return new self(
            self::KINDS[$random->getInt(0, \count(self::KINDS) - 1)],
            self::SIZES[$random->getInt(0, \count(self::SIZES) - 1)],
            $number,
            $random->getInt(0, $isShort ? 5 : 40),
            $random->getInt(0, 10),
            $random->getInt(0, 5) === 0 ? 100_000 : 1000,
        );
    }

    public function run(): mixed
    {
        usleep($this->microseconds);

        return match ($this->kind) {
            'string' => $this->text(),
            'array' => [$this->number, $this->text()],
            'throw' => throw $this->exception(),
            'recover' => TaskContext::current()->attempt < self::ATTEMPTS ? throw $this->exception() : $this->number,
            'exit' => exit(3),
            'stream' => \STDIN,
            default => $this->items(),
        };
    }

    /** Reads the items of a generator. Returns other results unchanged. */
    public static function read(mixed $result): mixed
    {
        return $result instanceof \Generator ? [iterator_to_array($result), $result->getReturn()] : $result;
    }

    /** Returns null if this outcome is possible, otherwise a description of the task and the outcome. */
    public function check(mixed $result, ?\Throwable $failure): ?string
    {
        $isPossible = match ($this->kind) {
            'string' => $this->size > self::MAX_RESULT_BYTES
                ? $failure instanceof ResultTooLargeException
                : $failure === null && $result === $this->text(),
            'array' => \strlen(serialize([$this->number, $this->text()])) > self::MAX_RESULT_BYTES
                ? $failure instanceof ResultTooLargeException
                : $failure === null && $result === [$this->number, $this->text()],
            'throw' => $this->isOwnException($failure) && $failure->attempts >= self::ATTEMPTS,
            'recover' => $failure === null && $result === $this->number,
            'exit' => $failure instanceof WorkerCrashedException,
            'stream' => $failure instanceof UnserializableException,
            default => $this->isItems($result, $failure),
        };

        $outcome = $failure === null
            ? get_debug_type($result)
            : $failure::class . ': ' . substr($failure->getMessage(), 0, 200);

        return $isPossible
            ? null
            : "{$this->kind} {$this->number}, {$this->size} bytes, item {$this->failsAt} of {$this->items}: {$outcome}";
    }

    private function text(): string
    {
        return str_repeat(\chr($this->number % 256), $this->size);
    }

    private function exception(): \DomainException
    {
        return new \DomainException("task {$this->number} " . $this->text(), 7, new \LogicException('cause'));
    }

    /** @phpstan-assert-if-true TaskFailedException $failure */
    private function isOwnException(?\Throwable $failure): bool
    {
        return $failure instanceof TaskFailedException
            && $failure->thrown->class === \DomainException::class
            && $failure->thrown->code === 7
            && $failure->thrown->previous?->message === 'cause'
            && str_starts_with($failure->thrown->message, "task {$this->number} ");
    }

    /** @return \Generator<int, int, mixed, string> */
    private function items(): \Generator
    {
        for ($i = 0; $i < $this->items; ++$i) {
            yield $i => $i === $this->failsAt ? throw $this->exception() : $i;
        }

        return 'end';
    }

    private function isItems(mixed $result, ?\Throwable $failure): bool
    {
        return match (true) {
            // A generator whose agent was lost is not repeated once items are stored.
            $failure instanceof WorkerCrashedException, $failure instanceof JobLostException => $this->items > 0,
            $this->failsAt < $this->items => $this->isOwnException($failure),
            default => $failure === null && \is_array($result) && $result[1] === 'end'
                && \is_array($result[0]) && \count($result[0]) === $this->items,
        };
    }
}
