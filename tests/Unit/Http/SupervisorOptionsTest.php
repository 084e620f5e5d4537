<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http;

use PHPUnit\Framework\TestCase;
use Spindle\Http\SupervisorOptions;

final class SupervisorOptionsTest extends TestCase
{
    public function testTheNumberOfProcessesHasALimit(): void
    {
        self::assertSame(1024, (new SupervisorOptions(processes: 1024))->processes);

        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage(
            'The option processes must be at most 1024, not 1025: each process loads the application,'
            . ' and one process for each CPU is usually enough',
        );
        new SupervisorOptions(processes: 1025);
    }
}
