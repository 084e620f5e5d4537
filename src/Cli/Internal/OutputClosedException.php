<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** Nobody reads an output any more, or it is given up: what is left to write is not wanted. */
final class OutputClosedException extends \RuntimeException implements SpindleException {}
