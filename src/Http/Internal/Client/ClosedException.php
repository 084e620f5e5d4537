<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The client was closed or killed. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class ClosedException extends \RuntimeException {}
