<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Http\Sapi;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Http\Response;
use Spindle\Http\Sapi;
use Spindle\Tests\Host;

final class DisabledFunctionsTest extends TestCase
{
    #[TestWith(['ini_set'])]
    #[TestWith(['stream_wrapper_register'])]
    public function testAFunctionMayBeDisabled(string $function): void
    {
        self::assertSame('answered', Host::call(
            self::class . '::answer',
            environment: ['REQUEST_METHOD' => 'GET', 'REQUEST_URI' => '/', 'HTTP_HOST' => 'host'],
            options: ['-d', "disable_functions={$function}"],
        ));
    }

    public static function answer(): string
    {
        Sapi::run(static fn(): Response => Response::text('printed'));

        return 'answered';
    }
}
