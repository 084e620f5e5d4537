<?php

declare(strict_types=1);

namespace Spindle;

/** Implemented by all exceptions of Spindle for runtime conditions. Programming errors are SPL exceptions. */
interface SpindleException extends \Throwable {}
