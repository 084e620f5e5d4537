<?php

declare(strict_types=1);

namespace Spindle\Tests;

use Spindle\Command\CommandResult;

/** All items of a run, and the exception that it throws after them. */
final class Drained
{
    /** @var list<mixed> */
    public array $keys = [];

    /** @var list<CommandResult> */
    public array $results = [];

    public ?\Throwable $thrown = null;

    /** @param iterable<mixed, CommandResult> $run */
    public function __construct(iterable $run)
    {
        try {
            foreach ($run as $key => $result) {
                $this->keys[] = $key;
                $this->results[] = $result;
            }
        } catch (\Throwable $thrown) {
            $this->thrown = $thrown;
        }
    }
}
