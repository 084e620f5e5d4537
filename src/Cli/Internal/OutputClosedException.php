<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** The reader of an output closed the stream, or {@see OutputStream::abandon()} was called. Some bytes are lost. */
final class OutputClosedException extends \RuntimeException implements SpindleException {}
