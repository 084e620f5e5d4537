<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

/** The client has closed the connection while the script of a {@see FakeServer} wanted something of it. */
final class HungUpException extends \RuntimeException {}
