<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerPoolOptions;

/** Holds the {@see WorkerGroup} that new workers of a pool join, and former groups that still have workers. */
final class WorkerGroups
{
    /** Only this class writes this property. */
    public WorkerGroup $current;

    /** @var array<int, WorkerGroup> by object id */
    private array $former = [];

    /** @param \Closure(ContextEvents): Context $context */
    public function __construct(
        private readonly \Closure $context,
        private readonly WorkerSettings $settings,
        private readonly WorkerPoolOptions $options,
        private readonly WorkerEvents $events,
    ) {
        $this->current = $this->newGroup();
    }

    /** Creates a group for new workers. Returns the former group, which is closed when it has no workers. */
    public function replace(): WorkerGroup
    {
        $former = $this->current;
        $this->current = $this->newGroup();
        $this->former[spl_object_id($former)] = $former;
        $this->closeIfFormerAndEmpty($former);

        return $former;
    }

    public function closeIfFormerAndEmpty(WorkerGroup $group): void
    {
        if ($group->workers === [] && isset($this->former[spl_object_id($group)])) {
            unset($this->former[spl_object_id($group)]);
            $group->close();
        }
    }

    public function close(bool $readsOutput): void
    {
        foreach ([$this->current, ...$this->former] as $group) {
            $group->workers = [];
            $group->close($readsOutput); // also closes the listener, and so the connections that it has not accepted
        }
        $this->former = [];
    }

    private function newGroup(): WorkerGroup
    {
        return new WorkerGroup($this->context, $this->settings, $this->options->startTimeout, $this->events);
    }
}
