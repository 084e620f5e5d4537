<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command;

use PHPUnit\Framework\Attributes\Before;
use Spindle\Command\StartMethod;
use Spindle\Tests\LauncherPhp;

/**
 * A launcher that starts commands with posix_spawn() through FFI.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait WithPosixSpawn
{
    #[Before(30)]
    protected function needFfi(): void
    {
        if (!LauncherPhp::hasFfi()) {
            self::markTestSkipped("The launcher can't load FFI here");
        }
    }

    protected function start(): StartMethod
    {
        return StartMethod::PosixSpawn;
    }
}
