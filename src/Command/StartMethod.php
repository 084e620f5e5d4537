<?php

declare(strict_types=1);

namespace Spindle\Command;

/** How a pool's launcher starts processes. */
enum StartMethod: string
{
    /** The best that PHP has here. */
    case Auto = 'auto';

    /** posix_spawn through FFI. */
    case PosixSpawn = 'posix_spawn';

    /** PHP's own proc_open. */
    case ProcOpen = 'proc_open';
}
