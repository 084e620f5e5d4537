<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The server has refused `Expect: 100-continue` with 417, so that the request has to be sent without it. */
final class ExpectationRefusedException extends \RuntimeException {}
