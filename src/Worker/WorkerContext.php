<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** What a worker is. */
enum WorkerContext
{
    /** A fresh PHP process. Everywhere; nothing of the pool's process is in it. */
    case Process;

    /**
     * A fork of a process that has only loaded the autoloader and the bootstrap file, and holds nothing of the pool's
     * process. Starts sooner, and shares what was loaded. Needs ext-pcntl and ext-posix.
     */
    case Fork;

    /**
     * A thread of one process for all workers. Needs a thread-safe PHP with ext-parallel. A crash in one thread ends
     * them all, and what they ran.
     */
    case Thread;
}
