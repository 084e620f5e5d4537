<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use PHPUnit\Framework\Attributes\BeforeClass;

/** Starts the shared cluster before the first test of the class, so that `LeavesNothing` does not report it. */
trait UsesCluster
{
    #[BeforeClass]
    public static function startSharedCluster(): void
    {
        Cluster::shared();
    }
}
