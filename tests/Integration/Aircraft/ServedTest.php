<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Aircraft;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\Aircraft\RunsAircraft;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Http\RunsServe;
use Spindle\Tests\LeavesNothing;

final class ServedTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;
    use RunsAircraft;
    use RunsServe;

    public function testItServes(): void
    {
        $this->seed(10);
        $this->serve($this->aircraft(['AIRCRAFT_CONNECTIONS' => '2']), ['--processes', '1']);
        self::assertStringContainsString('"next":"/aircraft?after=S-000001&limit=2"', $this->get('/aircraft?limit=2')->body);
    }
}
