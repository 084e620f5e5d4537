<?php

declare(strict_types=1);

namespace Spindle;

/** Everything that Spindle throws for a runtime condition implements this; programmer errors are SPL exceptions. */
interface SpindleException extends \Throwable {}
