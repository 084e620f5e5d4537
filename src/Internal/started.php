<?php

declare(strict_types=1);

namespace Spindle\Internal;

// Composer's autoloader loads this file early. Later, application servers may set REQUEST_TIME_FLOAT per request.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
