<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Postgres;

final class NativePoolTest extends PoolContract
{
    use NativeDriver;
    use Contract\RunsOnEveryLink;
    use Contract\CopiesOut;
    use Contract\RunsOnEveryPool;
    use Contract\RunsOnEveryPoolOfADriver;
    use Contract\ReceivesNotifications;
}
