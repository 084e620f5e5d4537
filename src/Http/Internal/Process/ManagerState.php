<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** State of a {@see ProcessManager}. It changes only to a later one. */
enum ManagerState
{
    case Running;

    /** The end was requested by {@see ProcessManager::close()}. The main loop acts on that. */
    case Closing;

    /** The processes are ending after their last answers. */
    case Stopping;

    /** The end of all processes was requested by {@see ProcessManager::kill()}. */
    case Killed;
}
