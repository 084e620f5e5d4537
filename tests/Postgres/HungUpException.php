<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** Thrown when a client closes its connection while the script of a {@see FakeServer} reads or writes. */
final class HungUpException extends \RuntimeException {}
