<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal\Redis;

/** Thrown when an answer or a message of the engine does not have the format that Spindle's scripts use. */
final class MalformedAnswerException extends \RuntimeException {}
