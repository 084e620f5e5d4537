<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/** A script was asked for something that it can't do: its message is the one line that the user sees. */
final class UsageException extends \UnexpectedValueException {}
