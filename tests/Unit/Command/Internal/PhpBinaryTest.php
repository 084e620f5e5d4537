<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command\Internal;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Internal\Launcher\PhpBinary;
use Spindle\LauncherException;

final class PhpBinaryTest extends TestCase
{
    public function testOnTheCommandLineItIsTheOneThatRuns(): void
    {
        self::assertSame(\PHP_BINARY, PhpBinary::find(null));
    }

    public function testTheOneGivenIsTaken(): void
    {
        self::assertSame('/bin/sh', PhpBinary::find('/bin/sh'));
    }

    /** @return iterable<string, array{string}> */
    public static function noPrograms(): iterable
    {
        yield 'nothing' => [''];
        yield 'missing' => ['/no/such/php'];
        yield 'a directory' => ['/tmp'];
        yield 'not executable' => ['/etc/passwd'];
    }

    #[DataProvider('noPrograms')]
    public function testAnotherThatIsNoProgramIsRefusedSayingHowToNameOne(string $given): void
    {
        $this->expectException(LauncherException::class);
        $this->expectExceptionMessage(
            "'{$given}' is not an executable file. Set its path with CommandPoolOptions(php: ",
        );
        PhpBinary::find($given);
    }

    public function testItReadsNoConfigurationAndKeepsItsStandardOutputFreeOfMessages(): void
    {
        $options = PhpBinary::options();

        self::assertSame('-n', $options[0]);
        self::assertContains('display_errors=stderr', $options);
        self::assertContains('display_startup_errors=0', $options);
    }
}
