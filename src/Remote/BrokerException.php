<?php

declare(strict_types=1);

namespace Spindle\Remote;

use Spindle\SpindleException;

/** The engine of a broker (Redis or Valkey) is not available, refuses a request, or can't be used with its settings. */
abstract class BrokerException extends \RuntimeException implements SpindleException {}
