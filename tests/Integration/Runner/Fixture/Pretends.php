<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Runner\Fixture;

use PHPUnit\Framework\TestCase;

final class Pretends extends TestCase
{
    public function testPretends(): void
    {
        fwrite(STDOUT, "\nOK (1 test, 1 assertion)\n");
        exit(0);
    }
}
