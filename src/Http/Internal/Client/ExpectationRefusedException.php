<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Client;

/** The server has answered `Expect: 100-continue` with 417. The request must be sent again without this field. */
final class ExpectationRefusedException extends \RuntimeException {}
