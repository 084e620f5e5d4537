<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Async;

use Spindle\Internal\Async\InputConsumer;

/** Collects values, up to a number that a test sets. */
final class CollectingConsumer implements InputConsumer
{
    /** @var list<mixed> */
    public array $values = [];

    /** @var list<mixed> */
    public array $keys = [];

    /** @var list<int> number of values at each call of onPaused() */
    public array $pauses = [];

    /** @var list<int> number of values at each call of onSuspended() */
    public array $suspensions = [];

    /** @var (\Closure(mixed): void)|null called with each value before it is collected */
    public ?\Closure $onValue = null;

    public function __construct(public int $limit = \PHP_INT_MAX) {}

    public function room(): int
    {
        return max(0, $this->limit - \count($this->values));
    }

    public function onValues(array $keys, array $values): void
    {
        foreach ($values as $i => $value) {
            if ($this->onValue !== null) {
                ($this->onValue)($value);
            }
            $this->keys[] = $keys[$i];
            $this->values[] = $value;
        }
    }

    public function onSuspended(): void
    {
        $this->suspensions[] = \count($this->values);
    }

    public function onPaused(): void
    {
        $this->pauses[] = \count($this->values);
    }
}
