<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\TestCase;

final class PublicApiTest extends TestCase
{
    public function testThePublicApiIsTheOneOfTheSnapshot(): void
    {
        self::assertStringEqualsFile(
            PublicApi::SNAPSHOT,
            PublicApi::describe(),
            'The public API changed. If that is meant, run `composer api`, commit public-api.txt and add a line to '
            . 'CHANGELOG.md; if not, make what you added private or move it below an Internal namespace.',
        );
    }
}
