<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandFailedException;
use Spindle\Command\CommandResult;
use Spindle\SpindleException;
use Spindle\Tests\CatchesThrown;

final class CommandResultTest extends TestCase
{
    use CatchesThrown;
    use MakesResults;

    /** @return iterable<string, array{CommandResult, bool, string}> */
    public static function results(): iterable
    {
        yield 'success' => [self::resultOf(), true, 'ls -l: exit code 0 after 1.500 s'];
        yield 'failure' => [self::resultOf(exitCode: 3), false, 'ls -l: exit code 3 after 1.500 s'];
        yield 'signal' => [self::resultOf(exitCode: null, signal: 9), false, 'ls -l: killed by signal 9 after 1.500 s'];
        yield 'timeout' => [
            self::resultOf(exitCode: 0, timedOut: true, error: 'timed out (1.5 s)'),
            false,
            'ls -l: timed out (1.5 s) after 1.500 s',
        ];
        yield 'retried' => [
            self::resultOf(exitCode: 1, attempts: 3),
            false,
            'ls -l: exit code 1 after 1.500 s, attempt 3',
        ];
        yield 'no start' => [
            self::resultOf(exitCode: 127, error: 'could not be started', duration: 0.0),
            false,
            'ls -l: could not be started',
        ];
        yield 'an error with a line end' => [
            self::resultOf(error: "bad\nthing\x7F"),
            false,
            'ls -l: bad\nthing\177 after 1.500 s',
        ];
    }

    #[DataProvider('results')]
    public function testItIsDescribedInOneLine(CommandResult $result, bool $succeeded, string $line): void
    {
        self::assertSame($succeeded, $result->succeeded());
        self::assertSame($line, $result->describe());
    }

    public function testALongCommandIsShortened(): void
    {
        $result = self::resultOf(command: Command::of('ls', str_repeat('x', 196) . str_repeat('ä', 1 << 19)));

        self::assertSame('ls \'' . str_repeat('x', 196) . '…: exit code 0 after 1.500 s', $result->describe());
    }

    public function testASuccessPassesThrough(): void
    {
        $result = self::resultOf();

        self::assertSame($result, $result->orThrow());
    }

    public function testAFailureIsThrownWithItselfAndTheEndOfItsErrors(): void
    {
        $result = self::resultOf(exitCode: 3, errors: str_repeat("noise\n", 1000) . "the reason\n");
        $exception = self::thrown(SpindleException::class, static fn() => $result->orThrow());
        self::assertInstanceOf(CommandFailedException::class, $exception);
        self::assertSame($result, $exception->result);
        self::assertStringStartsWith("ls -l: exit code 3 after 1.500 s\n", $exception->getMessage());
        self::assertStringEndsWith("noise\nthe reason", $exception->getMessage());
        self::assertLessThan(2100, \strlen($exception->getMessage()));
    }

    public function testAFailureWithoutErrorsIsThrownWithOneLine(): void
    {
        $this->expectExceptionObject(CommandFailedException::of(self::resultOf(exitCode: 1)));
        $this->expectExceptionMessageMatches('/^ls -l: exit code 1 after 1.500 s$/D');
        self::resultOf(exitCode: 1)->orThrow();
    }

    public function testOutputIsReadAsAStringAndAsAStreamAsOftenAsWanted(): void
    {
        $result = self::resultOf(output: "one\ntwo\n", errors: 'errors');

        for ($i = 0; $i < 2; ++$i) {
            self::assertSame("one\ntwo\n", $result->stdout());
            self::assertSame("one\n", fgets($result->stdoutStream()));
            self::assertSame('errors', stream_get_contents($result->stderrStream()));
        }
    }

    public function testADumpShowsNoOutput(): void
    {
        $dump = print_r(self::resultOf(output: 'a secret', errors: 'another secret'), true);

        self::assertStringNotContainsString('secret', $dump);
        self::assertStringContainsString('8 bytes', $dump);
        self::assertStringContainsString('14 bytes', $dump);
    }

    public function testADumpShowsNoInputAndNoEnvironment(): void
    {
        $command = Command::of('ls')->withInput('a secret')->withEnvironment(['TOKEN' => 'another secret']);

        self::assertStringNotContainsString('secret', print_r(self::resultOf(command: $command), true));
    }
}
