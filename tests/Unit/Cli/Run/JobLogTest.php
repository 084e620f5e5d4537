<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\FinishedJobs;
use Spindle\Cli\Internal\Run\JobLog;
use Spindle\Cli\Internal\UsageException;
use Spindle\Command\CommandResult;
use Spindle\Tests\CatchesThrown;
use Spindle\Tests\OwnDirectory;

final class JobLogTest extends TestCase
{
    use CatchesThrown;
    use OwnDirectory;

    /** @return iterable<string, array{CommandResult, int, int}> result, Exitval, Signal */
    public static function results(): iterable
    {
        yield 'success' => [Outcome::result(0), 0, 0];
        yield 'failure' => [Outcome::result(3), 3, 0];
        yield 'a signal' => [Outcome::result(null, 9), 0, 9];
        yield 'a timeout' => [Outcome::result(null, 15, true, 'timed out'), -1, 15];
        yield 'a timeout that the command turned into success' => [Outcome::result(0, null, true, 'timed out'), -1, 0];
        yield 'not started' => [Outcome::result(127, null, false, 'could not be started'), 127, 0];
        yield 'output that could not be kept' => [Outcome::result(0, null, false, 'no space'), -1, 0];
    }

    #[DataProvider('results')]
    public function testALineIsInGnuParallelsFormat(CommandResult $result, int $exit, int $signal): void
    {
        self::assertSame(
            "12\t:\t1700000000.123\t     2.500\t0\t42\t{$exit}\t{$signal}\techo\ta\n",
            JobLog::line(Outcome::job(12, "echo\ta"), $result, 42),
        );
    }

    public function testALineFeedInACommandIsANulInTheLog(): void
    {
        self::assertStringEndsWith(
            "\techo a\0echo b\n",
            JobLog::line(Outcome::job(1, "echo a\necho b"), Outcome::result(), 0),
        );
    }

    public function testANewLogHasAHeaderAndEmptiesAnOldLog(): void
    {
        $path = $this->file('log', JobLog::HEADER . "1\t:\t1\t1\t0\t0\t0\t0\ttrue\n");

        JobLog::start($path)->append(Outcome::job(5), Outcome::result(), 0);

        self::assertSame(
            JobLog::HEADER . JobLog::line(Outcome::job(5), Outcome::result(), 0),
            file_get_contents($path),
        );
    }

    /** @return iterable<string, array{string}> */
    public static function otherFiles(): iterable
    {
        yield 'a list of commands' => ["echo 1\necho 2\n"];
        yield 'no line end' => ['echo 1'];
        yield 'a header of another kind' => ["Seq\tHost\n1\t:\n"];
        yield 'a large line' => [str_repeat('x', 10_000)];
    }

    #[DataProvider('otherFiles')]
    public function testAFileThatIsNoJobLogIsNeverTouched(string $content): void
    {
        $path = $this->file('commands.txt', $content);
        foreach ([JobLog::start(...), JobLog::resume(...), JobLog::read(...)] as $open) {
            $refused = self::thrown(UsageException::class, static fn() => $open($path));
            self::assertSame(
                "option --joblog: '{$path}' exists and is not a job log; give another file",
                $refused->getMessage(),
            );
        }

        self::assertSame($content, file_get_contents($path));
    }

    public function testATornLastLineIsDropped(): void
    {
        $whole = JobLog::HEADER . self::line(1, 'a') . self::line(2, 'b');
        $torn = self::line(3, 'c');
        for ($length = 1; $length < \strlen($torn); ++$length) {
            $path = $this->file('log', $whole . substr($torn, 0, $length));

            [, $finished] = JobLog::resume($path);

            self::assertSame($whole, file_get_contents($path));
            self::assertSame(2, $finished->lastSequence);
            self::assertFalse($finished->has(3));
        }
    }

    public function testTheLargestCommandWithTheMostQuotesIsRead(): void
    {
        $command = str_repeat('x', 5 * (6 << 20)); // 6 MiB of ', each of which is logged as '"'"'
        $path = $this->file('log', JobLog::HEADER . self::line(1, $command));

        [, $finished] = JobLog::resume($path);

        self::assertTrue($finished->has(1));
    }

    public function testATornHeaderIsWrittenAnew(): void
    {
        for ($length = 0; $length < \strlen(JobLog::HEADER); ++$length) {
            $path = $this->file('log', substr(JobLog::HEADER, 0, $length));

            JobLog::resume($path);

            self::assertSame(JobLog::HEADER, file_get_contents($path));
        }
    }

    public function testReadingALogDoesNotChangeIt(): void
    {
        $content = JobLog::HEADER . self::line(1, 'a') . '2	:';
        $path = $this->file('log', $content);

        self::assertSame(1, JobLog::read($path)->lastSequence);
        self::assertSame($content, file_get_contents($path));
        self::assertSame(0, JobLog::read($this->path('none'))->lastSequence);
        self::assertFileDoesNotExist($this->path('none'));
    }

    public function testAMalformedLineIsReportedWithItsNumber(): void
    {
        foreach (["2\t:\tx\n", "\n", "0\t:\t1\t1\t0\t0\t0\t0\ttrue\n", "x\t:\t1\t1\t0\t0\t0\t0\ttrue\n"] as $line) {
            $path = $this->file('log', JobLog::HEADER . self::line(1, 'a') . $line . self::line(3, 'c'));
            $refused = self::thrown(UsageException::class, static fn() => JobLog::resume($path));
            self::assertSame(
                "option --joblog: line 3 of '{$path}' is not a line of a job log",
                $refused->getMessage(),
            );
        }
    }

    public function testLoggedJobsDoNotRunAgainExceptFailedOnesOnDemand(): void
    {
        $finished = $this->finished(
            self::line(1, 'a'),
            self::line(3, 'c', exit: 1),
            self::line(4, 'd', signal: 9),
            self::line(5000, 'z'),
        );

        $toRun = static fn(bool $retryFailed): array => array_map(
            static fn(int $sequence, string $text): bool
                => $finished->needsRun(Outcome::job($sequence, $text), $retryFailed),
            [1, 2, 3, 4, 4999, 5000, 5001],
            ['a', 'b', 'c', 'd', 'y', 'z', 'x'],
        );

        self::assertSame([false, true, false, false, true, false, true], $toRun(false));
        self::assertSame([false, true, true, true, true, false, true], $toRun(true));
        self::assertSame(5000, $finished->lastSequence);
    }

    public function testALaterLineSupersedesAnEarlier(): void
    {
        $finished = $this->finished(
            self::line(1, 'a', exit: 1),
            self::line(2, 'b'),
            self::line(1, 'a'),
            self::line(2, 'b', exit: 1),
        );

        self::assertFalse($finished->needsRun(Outcome::job(1, 'a'), true));
        self::assertTrue($finished->needsRun(Outcome::job(2, 'b'), true));
    }

    public function testAnotherCommandUnderANumberIsRefusedWithBoth(): void
    {
        $finished = $this->finished(self::line(1, 'a'), self::line(2, "echo\0b"));
        self::assertFalse($finished->needsRun(Outcome::job(2, "echo\nb"), false));

        $this->expectException(UsageException::class);
        $this->expectExceptionMessage(
            "job 2 is 'echo\\nb' in the job log '{$this->path('log')}', but the input has 'echo c'",
        );

        $finished->needsRun(Outcome::job(2, 'echo c'), false);
    }

    public function testLongCommandsAreShortenedInTheMessage(): void
    {
        $logged = str_repeat('a', 201);
        $given = str_repeat('b', 201);

        $this->expectException(UsageException::class);
        $this->expectExceptionMessage(
            "job 1 is '" . substr($logged, 0, 199) . "…' in the job log '{$this->path('log')}', but the input has '"
            . substr($given, 0, 199) . "…';",
        );

        $this->finished(self::line(1, $logged))->needsRun(Outcome::job(1, $given), false);
    }

    public function testALogOfGnuParallelIsUnderstood(): void
    {
        $finished = $this->finished("1\t:\t1427127428.563\t     0.003\t0\t2\t3\t0\techo 'a\tb'; exit 3\n");

        self::assertTrue($finished->needsRun(Outcome::job(1, "echo 'a\tb'; exit 3"), true));
    }

    /** @return iterable<string, array{string, string}> the command in GNU parallel's log, and in this one */
    public static function quotedCommands(): iterable
    {
        yield 'a blank' => ['echo a\\ b', "echo 'a b'"];
        yield 'an apostrophe' => ["echo it\\'s", "echo 'it'\\''s'"];
        yield 'an apostrophe, by a newer version' => ["echo 'it'\"'\"'s'", "echo 'it'\\''s'"];
        yield 'what is special to a shell' => ['echo \\$HOME\\;\\`\\*\\#\\~\\"', "echo '\$HOME;`*#~\"'"];
        yield 'an empty value' => ["echo ''", 'echo ""'];
        yield 'a line feed' => ["echo a'\0'b", "echo 'a\nb'"];
        yield 'bytes beyond ASCII' => ["echo \\\xc3\\\xa9", "echo 'é'"];
        yield 'characters that need no quotes here' => ["echo 'a@b:c'", 'echo a@b:c'];
        yield 'a shell line' => ['gzip -c a\\ b > a\\ b.gz', "gzip -c 'a b' > 'a b'.gz"];
        yield 'double quotes around a variable' => ['echo "$x y" a\\ b', "echo \"\$x y\" 'a b'"];
        yield 'an argument like a reserved word' => ['cp if if.1', "cp 'if' 'if'.1"];
        yield 'the value of an option' => ['ls --sort=a\\ b', "ls --sort='a b'"];
        yield 'the value of a variable' => ['a=b\\ c ls', "a='b c' ls"];
        yield 'a file in a home' => ['ls ~/a\\ b ~me/c', "ls ~/'a b' ~me/'c'"];
        yield 'a number before a redirection' => ['echo 1 2 > a\\ 2', "echo '1' '2' > 'a 2'"];
        yield 'a name after a variable' => ['ls $a/b\\ c', "ls \$a/'b c'"];
        yield 'a long value' => ['echo ' . str_repeat('a\\ ', 10_000), "echo '" . str_repeat('a ', 10_000) . "'"];
    }

    #[DataProvider('quotedCommands')]
    public function testAValueThatGnuParallelQuotedIsTheSame(string $logged, string $here): void
    {
        $finished = $this->finished(self::line(1, $logged));

        self::assertFalse($finished->needsRun(Outcome::job(1, $here), false));
    }

    /** @return iterable<string, array{string, string}> the command in the log, and another one */
    public static function differentCommands(): iterable
    {
        yield 'one argument or two' => ['echo a b', "echo 'a b'"];
        yield 'a variable or its name' => ['echo $x', "echo '\$x'"];
        yield 'a variable in quotes' => ['echo $x', 'echo "$x"'];
        yield 'a substitution in quotes' => ['echo `a b`', 'echo "`a b`"'];
        yield 'a pattern or its characters' => ['rm *', "rm '*'"];
        yield 'a home or a tilde' => ['ls ~', 'ls \\~'];
        yield 'an assignment or a program' => ['a=b', "'a=b'"];
        yield 'a line or two commands' => ['echo a; b', "echo 'a; b'"];
        yield 'an empty argument or none' => ['echo ', "echo ''"];
        yield 'a quote that does not end' => ["echo 'a", 'echo a'];
        yield 'a backslash at the end' => ['echo a\\', 'echo a'];
        yield 'a backslash in quotes' => ["echo 'a\\b'", 'echo a\\b'];
        yield 'a line that goes on' => ["echo a\\\0b", "echo 'a\nb'"];
        yield 'a comment' => ["true # it\\'s", "true # 'it'\\''s'"];
        yield 'a here-document' => ["cat << E\0'a'\0E", "cat << E\na\nE"];
        yield 'escapes of bash' => ["echo $'a'", 'echo $\\a'];
        yield 'a descriptor or a number' => ['echo 2>f', 'echo "2">f'];
        yield 'a descriptor or a number before nothing' => ['echo 2>f', "echo 2''>f"];
        yield 'a closed descriptor or a file' => ['echo 2>&3-', "echo 2>&3'-'"];
        yield 'an assignment or a program with quotes' => ["a=b 'ls'", "'a'=b ls"];
        yield 'an assignment or a program with quotes in its name' => ["a=b 'l'", "a''=b l"];
        yield 'a reserved word or a program' => ["if 'true'", "'if' true"];
        yield 'a reserved word or a program in a block' => ["{ a\\ b; }; ! 'true'", "{ a\\ b; }; ''! true"];
        yield 'the in of a loop or a name' => ["for a in 'b.c'; do echo; done", "for a 'in' b.c; do echo; done"];
        yield 'the home of a user or a tilde' => ["ls ~me 'a'", "ls ~'me' a"];
        yield 'a home or a tilde before a slash' => ["ls ~/a 'b'", "ls ~'/a' b"];
        yield 'a home in a path or a tilde' => ["a=b:~ 'ls'", "a=b':'~ ls"];
        yield 'a list or a word' => ["echo {1..3} 'a'", "echo {1'..'3} a"];
        yield 'a range or a character' => ["ls [a-c] 'a'", "ls [a'-'c] a"];
        yield 'an element or a program' => ["a[1]=2 'ls'", "'a'[1]=2 ls"];
        yield 'a longer variable' => ["echo \$xy 'a'", "echo \$x'y' a"];
        yield 'no argument or an empty one' => ["echo \$x 'a'", "echo ''\$x a"];
        yield 'one empty argument or none' => ['echo ', "echo ''''"];
        yield 'a pattern or a call' => ["ls @(a|b) 'a'", "ls '@'(a|b) a"];
    }

    #[DataProvider('differentCommands')]
    public function testCommandsThatDifferInMoreThanQuotesAreNotTheSame(string $logged, string $here): void
    {
        $this->expectException(UsageException::class);

        $this->finished(self::line(1, $logged))->needsRun(Outcome::job(1, $here), false);
    }

    public function testAJobFarFromAllOthersNeedsLittleMemory(): void
    {
        $lines = [];
        for ($number = 1; $number <= 2000; ++$number) {
            $lines[] = self::line(5000 * $number, 'true');
        }
        $before = memory_get_usage();
        $finished = $this->finished(...$lines);

        self::assertLessThan(4 << 20, memory_get_usage() - $before);
        self::assertSame(10_000_000, $finished->lastSequence);
        self::assertSame(5000, $finished->firstAfter(1));
        self::assertSame(10_000_000, $finished->firstAfter(9_995_000));
        self::assertTrue($finished->has(5000));
        self::assertFalse($finished->has(5001));
    }

    private function finished(string ...$lines): FinishedJobs
    {
        return JobLog::read($this->file('log', JobLog::HEADER . implode('', $lines)));
    }

    private static function line(int $sequence, string $text, int $exit = 0, int $signal = 0): string
    {
        return "{$sequence}\t:\t1.0\t 1.0\t0\t0\t{$exit}\t{$signal}\t{$text}\n";
    }
}
