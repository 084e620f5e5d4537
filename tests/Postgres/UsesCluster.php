<?php

declare(strict_types=1);

namespace Spindle\Tests\Postgres;

use PHPUnit\Framework\Attributes\BeforeClass;

/** Starts the shared cluster before any test of the class looks around, so that none takes it for something it left. */
trait UsesCluster
{
    #[BeforeClass]
    public static function startSharedCluster(): void
    {
        Cluster::shared();
    }
}
