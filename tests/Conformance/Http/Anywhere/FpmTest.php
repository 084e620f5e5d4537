<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\AfterClass;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\Eventually;
use Spindle\Tests\Text;

final class FpmTest extends AppContract
{
    use AsksByTcp;
    use CatchesThrown;
    use EndsItsScript;

    private static ?FpmHost $host = null;

    #[AfterClass]
    public static function stopHost(): void
    {
        self::$host?->stop();
        self::$host = null;
    }

    public function testAnInterruptedResponseIsNotComplete(): void
    {
        $this->assertInterrupted('/breaks');
        $isLogged = static fn(): bool => str_contains(implode(Text::lines(self::host()->log)), 'in the middle');
        Eventually::holds($isLogged, 'the log has it');
        self::assertSame(418, $this->ask('GET', '/teapot')->getStatusCode());
    }

    public function testAnInterruptedResponseIsNotCompleteBesideBackgroundWork(): void
    {
        $this->assertInterrupted('/breaks-beside-work');
    }

    public function testAResponseThatExitInterruptsIsNotComplete(): void
    {
        $this->assertInterrupted('/exits-midway');
    }

    public function testAResponseThatExitInterruptsBeforeBackgroundWorkExitsIsNotComplete(): void
    {
        $this->assertInterrupted('/exits-midway-and-later');
    }

    public function testAResponseThatExitInterruptsBeforeAShutdownFunctionExitsIsNotComplete(): void
    {
        $this->assertInterrupted('/exits-midway-and-at-the-end');
    }

    #[TestWith(['/exhausts-midway'])]
    #[TestWith(['/exhausts-midway?handler-registers-exit'])]
    #[TestWith(['/exhausts-midway?app-registers-exit'])]
    #[TestWith(['/exhausts-midway?front-registers-exit'])]
    #[TestWith(['/exits-midway?app-registers-exit'])]
    #[TestWith(['/exits-midway?front-registers-exit'])]
    public function testAResponseIsNotCompleteIfAFatalErrorInterruptsItOrAShutdownFunctionExits(string $target): void
    {
        $this->assertInterrupted($target);
    }

    private function assertInterrupted(string $target): void
    {
        $broken = self::thrown(\UnexpectedValueException::class, fn() => $this->ask('GET', $target));
        self::assertMatchesRegularExpression(
            '/^The response ended after \d+ bytes of its body$/D',
            $broken->getMessage(),
        );
    }

    private function address(): string
    {
        return self::host()->address;
    }

    private static function host(): FpmHost
    {
        return self::$host ??= new FpmHost();
    }
}
