<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A script can't do what was asked. The message is the only line that the user sees. */
final class UsageException extends \UnexpectedValueException {}
