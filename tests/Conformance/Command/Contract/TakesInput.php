<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Command\Command;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;
use Spindle\Tests\Eventually;
use Spindle\Tests\Streams;

use function Amp\delay;

/**
 * Standard input from a string, a stream or an iterable.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait TakesInput
{
    public function testWithoutInputACommandReadsAnEndAtOnce(): void
    {
        self::assertSame('', $this->execute(Command::of('cat'))->orThrow()->stdout());
    }

    /** @return iterable<string, array{int}> */
    public static function inputSizes(): iterable
    {
        foreach ([
            0,
            1,
            65535,
            65536,
            65537,
            LauncherProtocol::INPUT_WINDOW,
            LauncherProtocol::INPUT_WINDOW + 1,
            5 << 20,
        ] as $size) {
            yield "{$size} bytes" => [$size];
        }
    }

    #[DataProvider('inputSizes')]
    public function testAStringIsReadToItsEnd(int $size): void
    {
        $input = substr(str_repeat(implode('', array_map(chr(...), range(0, 255))), intdiv($size, 256) + 1), 0, $size);

        self::assertTrue($this->execute(Command::of('cat')->withInput($input))->stdout() === $input);
    }

    public function testFourMebibytesComeBackOnBothOutputs(): void
    {
        $input = random_bytes(1 << 22);
        $result = $this->execute(Command::of('tee', '/dev/stderr')->withInput($input));

        self::assertTrue($result->stdout() === $input, 'standard output differs');
        self::assertTrue($result->stderr() === $input, 'standard error differs');
    }

    public function testAnIterableIsPulledOnlyAsTheCommandReads(): void
    {
        $pulled = 0;
        $input = static function () use (&$pulled): \Generator {
            while (true) {
                $pulled += 10_000;
                yield str_repeat('x', 10_000);
            }
        };
        $this->execute(Command::of('sleep', '0.5')->withInput($input()));

        self::assertLessThan(LauncherProtocol::INPUT_WINDOW + (1 << 18), $pulled, 'the window and what a pipe holds');
    }

    public function testACommandThatDoesNotReadItsInputEndsAllTheSame(): void
    {
        $result = $this->execute(Command::shell('exit 3')->withInput(str_repeat('x', 8 << 20)));

        self::assertSame(3, $result->exitCode);
        self::assertNull($result->error);
    }

    public function testACommandThatClosesItsInputGoesOn(): void
    {
        $result = $this->execute(
            Command::shell('head -c 3; exec <&-; sleep 0.2; echo end')->withInput(str_repeat('x', 8 << 20)),
        );

        self::assertSame("xxxend\n", $result->stdout());
    }

    public function testAnInputStreamThatWasClosedFailsOnlyItsCommand(): void
    {
        $closed = Streams::open('/dev/zero', 'r');
        $command = Command::of('cat')->withInput($closed);
        fclose($closed);

        self::assertSame(
            ['in' => 'Could not read input from the stream that was set for it: it is closed', 'other' => null],
            $this->errors(['in' => $command, 'other' => Command::of('echo')]),
        );
    }

    public function testAnInputStreamThatIsClosedDuringTheRunFailsOnlyItsCommand(): void
    {
        $stream = Streams::open($this->file('input', str_repeat('x', 4 << 20)), 'r');
        $wait = 'until [ -e go ]; do sleep 0.05; done';
        $errors = Async::run(fn(): array => $this->errors([
            'in' => Command::shell("{$wait}; cat")->withInput($stream)->withWorkingDirectory($this->path()),
            'other' => Command::shell($wait)->withWorkingDirectory($this->path()),
        ]));
        Eventually::holds(static fn(): bool => ftell($stream) > 0, 'The input is read');
        fclose($stream);
        touch($this->path('go'));

        self::assertSame(
            ['in' => 'Could not read input from the stream that was set for it: it is closed', 'other' => null],
            $errors->await(),
        );
    }

    public function testAnInputStreamWithAnErrorFailsOnlyItsCommand(): void
    {
        $unreadable = Streams::open('/proc/self/mem', 'r'); // the first page of the memory is not mapped

        self::assertSame(
            ['in' => 'Could not read input from the stream that was set for it: Input/output error', 'other' => null],
            $this->errors(['in' => Command::of('cat')->withInput($unreadable), 'other' => Command::of('echo')]),
        );
    }

    /** @return iterable<string, array{bool}> */
    public static function modes(): iterable
    {
        yield 'blocking' => [true];
        yield 'non-blocking' => [false];
    }

    #[DataProvider('modes')]
    public function testAnInputStreamHasItsFormerModeWhenTheCommandHasEnded(bool $blocks): void
    {
        $writer = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        \assert($writer !== false);
        stream_set_blocking($pipes[1], $blocks);
        fwrite($pipes[0], "line\n");

        self::assertSame("line\n", $this->execute(Command::of('head', '-n', '1')->withInput($pipes[1]))->stdout());
        self::assertSame($blocks, stream_get_meta_data($pipes[1])['blocked']);
        delay(0);
        self::assertSame($blocks, stream_get_meta_data($pipes[1])['blocked']);

        array_map(fclose(...), $pipes);
        proc_close($writer);
    }

    /**
     * @param array<string, Command> $commands
     *
     * @return array<array-key, string|null> why each command failed, by key
     */
    private function errors(array $commands): array
    {
        $errors = [];
        foreach ($this->pool(2)->run($commands) as $key => $result) {
            $errors[$key] = $result->error;
        }
        ksort($errors);

        return $errors;
    }

    public function testAGeneratorThatWasAlreadyUsedIsReportedWithTheCommand(): void
    {
        $input = (static function (): \Generator {
            yield 'text';
        })();
        $command = Command::of('cat')->withInput($input);
        self::assertSame('text', $this->execute($command)->stdout());
        try {
            $this->execute($command);
            self::fail('Nothing is thrown');
        } catch (\ValueError $error) {
            self::assertStringEndsWith('Pass a new generator for each command. Command: cat', $error->getMessage());
            self::assertInstanceOf(\Exception::class, $error->getPrevious());
        }
    }

    public function testAnInputWithoutStringsAndAValueThatIsNoCommandAreNamed(): void
    {
        // @phpstan-ignore argument.type (a wrong value on purpose)
        $withNumber = Command::of('cat')->withInput([1]);
        foreach ([
            'not int. Command: cat' => ['k' => $withNumber],
            "not string (key 'k'); write" => ['k' => 'echo 1'],
        ] as $text => $commands) {
            try {
                // @phpstan-ignore argument.type (a wrong value on purpose)
                iterator_to_array($this->pool(1)->run($commands));
                self::fail('Nothing is thrown');
            } catch (\ValueError $error) {
                self::assertStringContainsString($text, $error->getMessage());
            }
        }
    }
}
