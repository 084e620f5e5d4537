<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\TestCase;

final class DemoTest extends TestCase
{
    private Workplace $workplace;

    protected function setUp(): void
    {
        $this->workplace = new Workplace();
    }

    protected function tearDown(): void
    {
        $this->workplace->remove();
    }

    public function testTheDemoDoesRealWorkAndComparesItWithAPlainLoop(): void
    {
        $process = $this->workplace->php(Workplace::project() . '/examples/demo/demo.php', '--limit=12');

        self::assertSame(0, $process->getExitCode(), $process->getErrorOutput());
        self::assertStringContainsString('36 commands in ', $process->getOutput());
        self::assertStringContainsString('12 files summed', $process->getOutput());
        self::assertMatchesRegularExpression('/would take [\d.]+ s for all: [\d.]+ times as long/', $process->getOutput());
    }
}
