<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** The reader of an output has closed it, or the output was abandoned. The remaining bytes are not written. */
final class OutputClosedException extends \RuntimeException implements SpindleException {}
