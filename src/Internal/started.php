<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Composer loads this file with its autoloader. Some application servers later set the time again for each request.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
