<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\UsageException;

final class UsageExceptionTest extends TestCase
{
    public function testAMessageIsOneLineWhateverTheValueHolds(): void
    {
        self::assertSame(
            "option --x: 'a\\nb\\033' is not allowed; give y",
            UsageException::option('--x', "a\nb\e", 'y')->getMessage(),
        );
        self::assertSame(
            "option --x: '\\302\\23331mü' is not allowed; give y",
            UsageException::option('--x', "\u{9b}31mü", 'y')->getMessage(),
        );
    }
}
