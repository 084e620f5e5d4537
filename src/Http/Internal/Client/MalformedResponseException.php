<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** A response is malformed or exceeds a limit. The message becomes `$why` of {@see IsFailureOfRequest::of()}. */
final class MalformedResponseException extends \RuntimeException {}
