<?php

declare(strict_types=1);

namespace Spindle\Worker;

/** The kind of workers: processes, forks or threads. */
enum WorkerContext
{
    /** A PHP process that inherits only working directory, umask and environment from this one. Needs no extension. */
    case Process;

    /**
     * A fork of a process that has only loaded the autoloaders and the bootstrap file. Forks inherit the same state as
     * new processes, but start faster and share the memory of loaded code. Needs ext-pcntl and ext-posix.
     */
    case Fork;

    /**
     * A thread. All workers are threads of one process. Needs a thread-safe PHP with ext-parallel. A crash in one
     * thread ends all workers with their tasks.
     */
    case Thread;
}
