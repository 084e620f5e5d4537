<?php

declare(strict_types=1);

namespace Spindle\Cli\Internal\Run\Input;

use Spindle\SpindleException;

/** One record of the input is not a valid command. Other records are not affected. */
final class BadRecordException extends \RuntimeException implements SpindleException {}
