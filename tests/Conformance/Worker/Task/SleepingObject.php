<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Worker\Task;

/** An object whose __sleep() names only some of its properties. */
class SleepingObject
{
    public function __construct(
        private mixed $sent = null,
        protected mixed $alsoSent = null,
        public mixed $omitted = null,
    ) {}

    /** @return list<string> */
    public function __sleep(): array
    {
        return ['sent', 'alsoSent'];
    }

    /** @return array{mixed, mixed, mixed} */
    public function properties(): array
    {
        return [$this->sent, $this->alsoSent, $this->omitted ?? null];
    }
}
