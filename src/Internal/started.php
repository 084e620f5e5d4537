<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Start time of this process or web request. Composer loads this file before a server may change REQUEST_TIME_FLOAT.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
