<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Bench;

use PHPUnit\Framework\Attributes\Group;
use PHPUnit\Framework\TestCase;
use Spindle\Bench\Aircraft\Agents;

final class AircraftLatencyBenchTest extends TestCase
{
    use RunsAircraftBench;

    private const LIGHT = '200 light requests a second';

    public function testTheFarDatabaseIsMeasuredAndEveryAnswerIsRight(): void
    {
        $plain = \array_slice(self::fpmRows(), 2);

        $this->assertPrintsTables(['--only', 'latency', '--clients', '1', '--seconds', '0.1', '--peers', 'fpm-plain'], [
            'Create, read, update, delete with 5 ms' => ['Spindle, one core', ...$plain],
            'Create, read, update, delete with 50 ms' => ['Spindle, one core', ...$plain],
            "What FPM would need for Spindle's rate at 50 ms" => $plain,
        ]);
    }

    /** Needs a quiet machine: agents run at idle priority, so other tests would leave them hardly any CPU time. */
    #[Group('quiet')]
    public function testCertificatesAreMeasuredHereAndAtAgentsAndEveryAnswerIsRight(): void
    {
        $options = ['--only', 'certificates', '--seconds', '0.1', '--peers', 'none'];

        $this->assertPrintsTables($options, [self::LIGHT => self::certificateRows()]);
    }

    #[Group('full')]
    public function testCertificatesAreMeasuredBesideFpmAndEveryAnswerIsRight(): void
    {
        $rows = [...self::certificateRows(), ...\array_slice(self::fpmRows(), 0, 1)];

        $options = ['--only', 'certificates', '--seconds', '0.5', '--peers', 'fpm'];

        $this->assertPrintsTables($options, [self::LIGHT => $rows]);
    }

    /** @return list<string> */
    private static function certificateRows(): array
    {
        $agents = Agents::missing() === null ? ['Spindle, two agents'] : [];

        return ['Spindle, workers on its core', 'Spindle, workers on both cores', ...$agents];
    }
}
