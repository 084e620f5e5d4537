<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** The engine behind a broker can't be used, now or as it is. */
abstract class BrokerException extends \RuntimeException implements SpindleException {}
