<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** The reader has closed an output, or {@see OutputStream::abandon()} was called. Not all bytes were written. */
final class OutputClosedException extends \RuntimeException implements SpindleException {}
