<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal\Launcher;

use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\Process\Files;

final class FilesTest extends TestCase
{
    #[TestWith([__DIR__ . '/missing'])]
    #[TestWith([''])]
    #[TestWith(["a\0b"])]
    public function testAFileThatCannotBeReadIsReportedWithoutAnException(string $file): void
    {
        self::assertFalse(Files::read($file));
    }
}
