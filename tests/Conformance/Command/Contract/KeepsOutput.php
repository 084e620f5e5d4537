<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Command\Command;
use Spindle\Command\Output;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

/**
 * Captured output: every byte that was written before the exit, and no others.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait KeepsOutput
{
    private const WRITES = 'fwrite(STDOUT, str_repeat("o", (int) $argv[1]));'
        . ' fwrite(STDERR, str_repeat("e", (int) $argv[2]));';

    /** @return iterable<string, array{int, int}> bytes on standard output and standard error */
    public static function amounts(): iterable
    {
        yield 'nothing' => [0, 0];
        yield 'one byte beyond a pipe on standard output' => [65537, 0];
        yield 'one byte beyond a pipe on standard error' => [0, 65537];
        yield 'one byte beyond a pipe on both' => [65537, 65537];
        yield 'a full pipe on both' => [65536, 65536];
        yield 'beyond what stays in memory on both' => [3_000_001, 2_000_003];
    }

    #[DataProvider('amounts')]
    public function testEveryByteOfBothOutputsIsKept(int $out, int $error): void
    {
        $result = $this->execute($this->php(self::WRITES, (string) $out, (string) $error));

        self::assertTrue($result->succeeded());
        self::assertTrue($result->stdout() === str_repeat('o', $out), 'standard output differs');
        self::assertTrue($result->stderr() === str_repeat('e', $error), 'standard error differs');
    }

    public function testOutputsThatAlternateAreKeptApart(): void
    {
        $result = $this->execute($this->php(
            'for ($i = 0; $i < 300; ++$i) { fwrite(STDOUT, str_repeat("o", 1000));'
            . ' fwrite(STDERR, str_repeat("e", 1000)); }',
        ));

        self::assertTrue($result->stdout() === str_repeat('o', 300_000), 'standard output differs');
        self::assertTrue($result->stderr() === str_repeat('e', 300_000), 'standard error differs');
    }

    public function testBinaryOutputArrivesByteForByte(): void
    {
        $bytes = implode('', array_map(chr(...), range(0, 255))) . "\xFF\xFE\xC3\x28\xED\xA0\x80\0\r\n\0";
        $result = $this->execute($this->php(
            'fwrite(STDOUT, $b = hex2bin($argv[1])); fwrite(STDERR, strrev($b));',
            bin2hex($bytes),
        ));

        self::assertSame(bin2hex($bytes), bin2hex($result->stdout()));
        self::assertSame(bin2hex(strrev($bytes)), bin2hex($result->stderr()));
    }

    public function testBinaryArgumentsArriveByteForByte(): void
    {
        $bytes = implode('', array_map(chr(...), range(1, 255)));
        $result = $this->execute($this->php('echo bin2hex($argv[1]), ":", count($argv);', $bytes, ''));

        self::assertSame(bin2hex($bytes) . ':3', $result->stdout());
    }

    public function testOutputInAnEnlargedPipeIsKeptAtTheExit(): void
    {
        if (!is_executable('/usr/bin/perl')) {
            self::markTestSkipped('Perl is not here to enlarge a pipe');
        }
        // F_SETPIPE_SZ. The launcher is stopped until the command has ended, so that the pipe contains all output then.
        $result = $this->execute(Command::of('/usr/bin/perl', '-e', <<<'PERL'
            fcntl(STDOUT, 1031, 1 << 20) or die "no larger pipe: $!";
            my ($command, $launcher) = ($$, getppid());
            kill 'STOP', $launcher;
            if (fork() == 0) {
                open my $announcement, '<&=', 3 and close $announcement;
                close STDOUT; close STDERR;
                select undef, undef, undef, 0.01 while getppid() == $command;
                kill 'CONT', $launcher;
                exit;
            }
            syswrite STDOUT, 'x' x (1 << 20);
            PERL));

        self::assertSame(1 << 20, \strlen($result->stdout()));
    }

    public function testTheResultComesAtTheExitNotWhenADescendantClosesThePipe(): void
    {
        $pool = $this->pool(1);
        $start = hrtime(true);
        $result = $pool->execute(Command::shell('sleep 20 & echo $!'));

        self::assertLessThan(5.0, (hrtime(true) - $start) / 1e9);
        self::assertSame(0, $result->exitCode);
        self::assertTrue(posix_kill((int) $result->stdout(), 0), 'the descendant still runs');
    }

    public function testAClosedOutputIsNotTheExit(): void
    {
        $result = $this->execute(Command::shell('exec >&- 2>&-; sleep 0.3; exit 7'));

        self::assertSame(7, $result->exitCode);
        self::assertGreaterThanOrEqual(0.3, $result->duration);
    }

    public function testDiscardedOutputIsGone(): void
    {
        $result = $this->execute($this->php(self::WRITES, '100000', '3')->withStdout(Output::Discard));

        self::assertSame('', $result->stdout());
        self::assertSame('eee', $result->stderr());

        $result = $this->execute($this->php(self::WRITES, '3', '100000')->withStderr(Output::Discard));

        self::assertSame('ooo', $result->stdout());
        self::assertSame('', $result->stderr());
    }
}
