<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** The reader of an output is gone, or the output was given up. The rest is not written. */
final class OutputClosedException extends \RuntimeException implements SpindleException {}
