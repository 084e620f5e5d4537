<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Composer loads this file with its autoloader. Some application servers set the time anew for each request later.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
