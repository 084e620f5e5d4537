<?php

declare(strict_types=1);

namespace Spindle\Command\Internal;

use Spindle\Internal\Launcher\Environment;

/** Gives each owner of commands (a call of run(), runInOrder() or execute()) a lane: a queue for its commands. */
final class Lanes
{
    /** @var \WeakMap<PendingCommandOwner, array<array-key, string>> environment of the owner's commands, by owner */
    private \WeakMap $environments;

    /** @var array<array-key, string> environment of this process when the newest lane was opened */
    private array $environment = [];

    private int $lastNumber = 0;

    public function __construct()
    {
        $this->environments = new \WeakMap();
    }

    /** Returns the number of a new lane. All commands of the owner get the environment that this process has now. */
    public function open(PendingCommandOwner $owner): int
    {
        $environment = Environment::variables();
        // Consecutive lanes with equal environments share one array: PHP compares an array with itself very quickly.
        if ($environment !== $this->environment) {
            $this->environment = $environment;
        }
        $this->environments[$owner] = $this->environment;

        return ++$this->lastNumber;
    }

    /** @return array<array-key, string> */
    public function environmentOf(PendingCommandOwner $owner): array
    {
        return $this->environments[$owner];
    }

    /** Makes all runs submit no more commands, and cancel their waiting commands. Does not affect execute() calls. */
    public function cancelWaiting(): void
    {
        foreach ($this->environments as $owner => $_) {
            $owner->cancelWaiting();
        }
    }

    public function close(): void
    {
        foreach ($this->environments as $owner => $_) {
            $owner->close();
        }
    }
}
