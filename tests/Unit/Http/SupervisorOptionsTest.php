<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use PHPUnit\Framework\TestCase;
use Spindle\Http\SupervisorOptions;

final class SupervisorOptionsTest extends TestCase
{
    public function testTheNumberOfProcessesHasALimit(): void
    {
        self::assertSame(500, (new SupervisorOptions(processes: 500))->processes);

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The option processes must be at most 500, not 501: each process loads the application,'
            . ' and one process for each CPU is usually enough',
        );
        new SupervisorOptions(processes: 501);
    }

    public function testAProcessMustBeReplacedBeforeItReachesTheMemoryLimit(): void
    {
        foreach (['65M', '-1', null] as $limit) {
            $options = new SupervisorOptions(maxMemoryBytes: 64 << 20, memoryLimit: $limit);
            self::assertSame($limit, $options->memoryLimit);
        }

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The option maxMemoryBytes must be less than memoryLimit (64M), not 67108864. Otherwise, a process fails '
            . 'before it is replaced',
        );
        new SupervisorOptions(maxMemoryBytes: 64 << 20, memoryLimit: '64M');
    }
}
