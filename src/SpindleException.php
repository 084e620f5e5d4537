<?php

declare(strict_types=1);

namespace Spindle;

/** Implemented by Spindle's exceptions for failures at run time. Programming errors throw PHP's own exceptions. */
interface SpindleException extends \Throwable {}
