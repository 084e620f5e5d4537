<?php

declare(strict_types=1);

namespace Spindle\Command;

/** The function with which a pool's launchers start processes. */
enum StartMethod: string
{
    /** posix_spawn if the launcher's PHP has FFI and the C library has the required functions; otherwise proc_open. */
    case Auto = 'auto';

    /** posix_spawn(3), through FFI. */
    case PosixSpawn = 'posix_spawn';

    /** PHP's own proc_open(). */
    case ProcOpen = 'proc_open';
}
