<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use Spindle\Command\StartMethod;
use Spindle\Tests\LauncherPhp;

/**
 * A launcher whose PHP has none of FFI, pcntl and posix.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait WithBareProcOpen
{
    protected function start(): StartMethod
    {
        return StartMethod::Auto;
    }

    protected function launcherPhp(): string
    {
        return LauncherPhp::withoutExtensions($this->path());
    }

    protected function launcherHandlesSignals(): bool
    {
        return false;
    }
}
