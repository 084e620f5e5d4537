<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Worker;

/** A task that calls one of {@see TaskFunctions} with arguments. */
final class Call
{
    /** @var array<mixed> */
    private readonly array $arguments;

    public function __construct(private readonly string $deed, mixed ...$arguments)
    {
        $this->arguments = $arguments;
    }

    public function __invoke(): mixed
    {
        $deed = [TaskFunctions::class, $this->deed];
        \assert(\is_callable($deed));

        return $deed(...$this->arguments);
    }
}
