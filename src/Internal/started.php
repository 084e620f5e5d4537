<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Composer loads this file with its autoloader. Later, some application servers set REQUEST_TIME_FLOAT per request.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
