<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** All that a loop yields, whatever its keys are, and what it throws then. */
final class Collected
{
    /** @var list<mixed> */
    public array $keys = [];

    /** @var list<mixed> */
    public array $values = [];

    public ?\Throwable $thrown = null;

    /** @param iterable<mixed, mixed> $results */
    public function __construct(iterable $results)
    {
        try {
            foreach ($results as $key => $value) {
                $this->keys[] = $key;
                $this->values[] = $value;
            }
        } catch (\Throwable $thrown) {
            $this->thrown = $thrown;
        }
    }
}
