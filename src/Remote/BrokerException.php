<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** Thrown when the engine behind a broker can't be used, now or with its settings. */
abstract class BrokerException extends \RuntimeException implements SpindleException {}
