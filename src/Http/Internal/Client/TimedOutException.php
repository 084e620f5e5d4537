<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** A deadline of a connection has passed. The message is a clause. */
final class TimedOutException extends \RuntimeException {}
