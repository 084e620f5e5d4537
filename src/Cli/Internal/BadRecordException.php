<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal;

use Spindle\SpindleException;

/** A record of the input can't be made into a command; the others can. */
final class BadRecordException extends \RuntimeException implements SpindleException {}
