<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class PoolTest extends PoolContract
{
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
    use Contract\KeepsConnections;
    use Contract\LendsConnections;
    use Contract\ReportsLeaks;
    use Contract\ClosesThePool;
    use Contract\EndsWaits;
    use Contract\ReplacesConnections;
    use Contract\RunsSideBySide;
    use Contract\UndoesChanges;
    use Contract\ReceivesNotifications;
    use Contract\SharesAListener;
    use Contract\FollowsSchemaChanges;
}
