<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

/** State of a {@see ProcessManager}. A state can change only to a state below it in this list. */
enum ManagerState
{
    case Running;

    /** {@see ProcessManager::close()} was called. {@see ProcessManager::run()} will end the processes. */
    case Closing;

    /** The processes answer their last requests, and end. */
    case Stopping;

    /** {@see ProcessManager::kill()} was called. {@see ProcessManager::run()} will kill the processes. */
    case Killed;
}
