<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\App;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Application;
use Spindle\Http\Response;

/** Shows that an application refuses parameters that would fail only while it serves. */
final class ApplicationTest extends TestCase
{
    /** @param array<string, array<string, mixed>> $parameters */
    #[TestWith([
        ['statistics' => ['jobs' => new \stdClass()]],
        'Each value of the parameter statistics must be a Spindle\Statistics. The value for "jobs" is of type stdClass',
    ])]
    #[TestWith([
        ['checks' => ['database' => 'time']],
        'Each value of the parameter checks must be a Closure. The value for "database" is of type string',
    ])]
    public function testAValueOfAnotherTypeIsRefused(array $parameters, string $message): void
    {
        $this->expectException(\TypeError::class);
        $this->expectExceptionMessage($message);

        $class = new \ReflectionClass(Application::class);
        $class->newInstance(static fn(): Response => new Response(204), ...$parameters);
    }
}
