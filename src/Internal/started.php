<?php

declare(strict_types=1);

namespace Spindle\Internal;

// The start time of this process. Composer loads this file early; later, a server may change REQUEST_TIME_FLOAT.
\defined(__NAMESPACE__ . '\STARTED')
    || \define(__NAMESPACE__ . '\STARTED', $_SERVER['REQUEST_TIME_FLOAT'] ?? microtime(true));
