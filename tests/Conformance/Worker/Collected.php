<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker;

/** Everything that a loop yields, with duplicate keys, and the exception that it throws. */
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
