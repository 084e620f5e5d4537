<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use PHPUnit\Framework\Attributes\BeforeClass;
use Spindle\Remote\Keys;

/** Starts the shared Redis before any test of the class looks around, so that none takes it for something it left. */
trait UsesRedis
{
    #[BeforeClass]
    public static function startSharedRedis(): void
    {
        Redis::shared();
    }

    protected static function newQueue(): string
    {
        return 'test-' . bin2hex(random_bytes(6));
    }

    protected static function keys(): Keys
    {
        return new Keys([AgentProgram::KEY]);
    }
}
