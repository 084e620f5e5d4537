<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Worker\WorkerStartException;

/**
 * Replaces a pool's workers when the credentials (user, groups, root directory) or autoloaders of this process changed.
 * Running tasks finish. Other tasks move to the new workers, or fail if the new workers could have more privileges.
 */
final class WorkerReplacement
{
    public function __construct(
        private readonly Workers $workers,
        private readonly TaskTimeouts $timeouts,
        private readonly PoolActivity $activity,
    ) {}

    /** Replaces outdated workers. Waiting tasks may fail in this call, so callers must add new tasks after the call. */
    public function replaceOutdated(): void
    {
        $group = $this->workers->group();
        if ($group->hasUserChanged()) {
            $this->replaceForCredentials();
            $group = $this->workers->group();
        }
        if ($group->haveAutoloadersChanged()) {
            $this->replace('autoloaders', true);
        }
    }

    /**
     * Replaces the workers by new ones with this process's user and groups. If the old workers run as root, their
     * unstarted tasks move to the new workers. Otherwise these tasks fail, because the move could give them privileges.
     */
    public function replaceForCredentials(): void
    {
        $mayMove = $this->workers->group()->isOfRoot;
        if ($this->replace('credentials', $mayMove) && !$mayMove) {
            $this->activity->abort(WorkerStartException::otherCredentials());
        }
    }

    /**
     * @param bool $mayMove whether new workers may run the unstarted tasks; if false, the caller must fail these tasks
     *
     * @return bool false in a fork, which must not touch the workers
     */
    private function replace(string $what, bool $mayMove): bool
    {
        if ($this->activity->isInFork()) {
            return false;
        }
        foreach ($this->workers->all as $worker) {
            $this->timeouts->takeBack($worker);
            foreach ($worker->batches as $batch) {
                $batch->isPinned = $batch->isPinned || !$mayMove;
            }
        }
        $this->workers->replaceAll($what);

        return true;
    }
}
