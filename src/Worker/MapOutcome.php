<?php

declare(strict_types=1);

namespace Spindle\Worker;

/**
 * Result or failure of one task of {@see Executor::mapOutcomes()} or {@see Executor::mapOutcomesUnordered()}.
 *
 * @template-covariant TValue
 */
final readonly class MapOutcome
{
    /** @param TValue|null $value */
    private function __construct(private mixed $value, public ?\Throwable $failure) {}

    /**
     * @internal
     *
     * @template TResult
     *
     * @param \Closure(): TResult $result returns the result of the task, or throws its failure
     *
     * @return self<TResult>
     */
    public static function of(\Closure $result): self
    {
        try {
            return new self($result(), null);
        } catch (TaskException|UnserializableException $failure) {
            return self::failed($failure);
        }
    }

    /**
     * @internal
     *
     * @return self<never>
     */
    public static function failed(\Throwable $failure): self
    {
        return new self(null, $failure);
    }

    /**
     * @phpstan-assert-if-true null $this->failure
     * @phpstan-assert-if-false !null $this->failure
     */
    public function succeeded(): bool
    {
        return $this->failure === null;
    }

    /**
     * @return TValue the return value of the task
     *
     * @throws \Throwable the failure of the task
     */
    public function value(): mixed
    {
        /** @var TValue */
        return $this->failure === null ? $this->value : throw $this->failure;
    }

    /** Returns one line for a log: "succeeded", or the message of the failure without control characters. */
    public function describe(): string
    {
        return $this->failure === null
            ? 'succeeded'
            : addcslashes((string) preg_replace('/\s*\n\s*/', ' ', $this->failure->getMessage()), "\0..\37\177");
    }
}
