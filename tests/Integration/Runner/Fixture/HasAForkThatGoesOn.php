<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class HasAForkThatGoesOn extends TestCase
{
    public function testForks(): void
    {
        $fork = pcntl_fork();
        if ($fork !== 0) {
            exit(0); // the fork reports instead
        }
        self::assertSame(getmypid(), getmypid());
    }
}
