<?php

declare(strict_types=1);

namespace Spindle\Tests\Remote;

use PHPUnit\Framework\Attributes\BeforeClass;
use Spindle\Remote\SigningKeys;

/** Starts the shared Redis before the tests of the class check for leftovers, so that they ignore it. */
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

    protected static function keys(): SigningKeys
    {
        return new SigningKeys([AgentProgram::KEY]);
    }
}
