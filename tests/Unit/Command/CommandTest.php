<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Command;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\Output;
use Spindle\Command\PortableCommand;

final class CommandTest extends TestCase
{
    public function testAProgramIsGivenWithItsArguments(): void
    {
        $command = Command::of('ls', '-l', "a\xFFb", '');

        self::assertSame(['ls', '-l', "a\xFFb", ''], $command->arguments);
        self::assertNull($command->line);
    }

    public function testNamedArgumentsAreArgumentsToo(): void
    {
        self::assertSame(['ls', 'a', 'b'], Command::of('ls', ...['x' => 'a', 'y' => 'b'])->arguments);
    }

    public function testAShellLineIsKeptAsItIs(): void
    {
        $command = Command::shell("  echo \$HOME\n");

        self::assertSame("  echo \$HOME\n", $command->line);
        self::assertSame([], $command->arguments);
    }

    public function testWithoutMoreACommandHasNoLimitsAndIsCaptured(): void
    {
        $command = Command::of('ls');

        self::assertSame(
            [null, null, [], null, null],
            [$command->timeout, $command->idleTimeout, $command->environment, $command->directory, $command->input],
        );
        self::assertSame([Output::Capture, Output::Capture], [$command->stdout, $command->stderr]);
    }

    public function testEachWitherChangesACopyAndNothingElse(): void
    {
        $closure = static function (string $bytes): void {};
        $original = Command::of('ls', '-l');
        $changed = $original
            ->withTimeout(1.5)
            ->withIdleTimeout(2.5)
            ->withEnvironment(['A' => 'b'])
            ->withWorkingDirectory('/tmp')
            ->withInput('input')->withStdout($closure)->withStderr(Output::Discard);

        self::assertEquals(Command::of('ls', '-l'), $original);
        self::assertSame(
            [['ls', '-l'], 1.5, 2.5, ['A' => 'b'], '/tmp', 'input', $closure, Output::Discard],
            [
                $changed->arguments,
                $changed->timeout,
                $changed->idleTimeout,
                $changed->environment,
                $changed->directory,
                $changed->input,
                $changed->stdout,
                $changed->stderr,
            ],
        );
        self::assertEquals(
            Command::of('ls', '-l')->withEnvironment(['A' => 'b']),
            $changed
                ->withTimeout(null)
                ->withIdleTimeout(null)
                ->withWorkingDirectory(null)
                ->withInput(null)
                ->withStdout(Output::Capture)
                ->withStderr(Output::Capture),
        );
    }

    public function testAListOfVariablesIsRefusedWithTheRightForm(): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage("Write ['NAME' => 'value'], not ['NAME=value']");

        Command::of('env')->withEnvironment(['A' => 'b', 'FOO=1']);
    }

    public function testChangesOfTheEnvironmentAddUpAndTheLastOneCounts(): void
    {
        $command = Command::of('env')->withEnvironment(['A' => '1', 'B' => '2'])->withEnvironment([
            'B' => null,
            'C' => '3',
            '7' => 'x',
        ]);

        self::assertEquals(['A' => '1', 'B' => null, 'C' => '3', '7' => 'x'], $command->environment);
    }

    /** @return iterable<string, array{\Closure(): mixed, string}> */
    public static function badValues(): iterable
    {
        $command = Command::of('ls');
        yield 'no program' => [static fn() => Command::of(''), 'program of a command must not be empty'];
        yield 'NUL in the program' => [
            static fn() => Command::of("l\0s"),
            'The program contains a NUL byte at offset 1',
        ];
        yield 'NUL in an argument' => [
            static fn() => Command::of('ls', 'a', "b\0"),
            "Argument 2 of 'ls' contains a NUL byte at offset 1",
        ];
        yield 'NUL in a line' => [
            static fn() => Command::shell("echo \0"),
            'The shell line contains a NUL byte at offset 5',
        ];
        foreach ([0.0, -1.0, \INF, -\INF, \NAN] as $seconds) {
            yield "a timeout of {$seconds}" => [
                static fn() => $command->withTimeout($seconds),
                'The timeout must be a positive, finite number of seconds, or null for no limit',
            ];
            yield "an idle timeout of {$seconds}" => [
                static fn() => $command->withIdleTimeout($seconds),
                'The idle timeout must be a positive, finite number of seconds, or null for no limit',
            ];
        }
        foreach (['', 'A=B', '=', "A\0"] as $name) {
            yield 'a variable named ' . json_encode($name) => [
                static fn() => $command->withEnvironment([$name => 'x']),
                'is not a name of an environment variable',
            ];
        }
        yield 'NUL in a variable' => [
            static fn() => $command->withEnvironment(['A' => "x\0"]),
            'The environment variable A contains a NUL byte at offset 1',
        ];
        yield 'a number in a variable' => [
            // @phpstan-ignore argument.type (which is the point)
            static fn() => $command->withEnvironment(['A' => 5]),
            'The environment variable A must be a string, or null to remove it, not int; convert the value to a string',
        ];
        yield 'an empty directory' => [static fn() => $command->withWorkingDirectory(''), 'must not be empty'];
        yield 'NUL in the directory' => [static fn() => $command->withWorkingDirectory("/tmp\0"), 'NUL'];
        // @phpstan-ignore argument.type (which is the point)
        yield 'a number as input' => [static fn() => $command->withInput(7), 'not int'];
        yield 'a string as standard output' => [
            // @phpstan-ignore argument.type (which is the point)
            static fn() => $command->withStdout('file'),
            'The target of standard output must be an Output, a closure or an open stream, not string',
        ];
        yield 'null as standard error' => [
            // @phpstan-ignore argument.type (which is the point)
            static fn() => $command->withStderr(null),
            'The target of standard error must be',
        ];
    }

    /** @param \Closure(): mixed $make */
    #[DataProvider('badValues')]
    public function testABadValueIsRefusedImmediatelyAndNamed(\Closure $make, string $message): void
    {
        $this->expectException(\ValueError::class);
        $this->expectExceptionMessage($message);
        $make();
    }

    public function testNamesThatAShellCouldNotSetAreVariablesAllTheSame(): void
    {
        self::assertSame(
            ['a.b' => 'x', 'ä' => "\xFF"],
            Command::of('env')->withEnvironment(['a.b' => 'x', 'ä' => "\xFF"])->environment,
        );
    }

    /** @return iterable<string, array{Command, string}> */
    public static function strings(): iterable
    {
        yield 'plain words' => [Command::of('ls', '-l', '/tmp/a_b.c'), 'ls -l /tmp/a_b.c'];
        yield 'blanks and quotes' => [Command::of('echo', "it's", 'a b', ''), "echo 'it'\\''s' 'a b' ''"];
        yield 'what a shell would expand' => [Command::of('echo', '$HOME', '*', "a\nb"), "echo '\$HOME' '*' 'a\nb'"];
        yield 'a shell line' => [Command::shell('echo $HOME'), 'echo $HOME'];
    }

    #[DataProvider('strings')]
    public function testTheStringOfACommandIsAShellLine(Command $command, string $string): void
    {
        self::assertSame($string, $command->toString());
    }

    public function testJoinedArgumentsAreSeveralWords(): void
    {
        $command = Command::ofJoined('echo', '-n', "a b\0\0c");

        self::assertSame(['echo', '-n', 'a b', '', 'c'], $command->words());
        self::assertSame("echo -n 'a b' '' c", $command->toString());
        self::assertSame(
            PortableCommand::encode(Command::of('echo', '-n', 'a b', '', 'c')),
            PortableCommand::encode($command),
        );
        self::assertSame([], Command::shell('echo')->words());
    }
}
