<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\TestCase;

/** Commands that have as many values as fit: the values are never split in the process of `spindle run`. */
final class PackedRunTest extends TestCase
{
    use RunsSpindle;

    public function testEachOfManyValuesIsOneArgumentOfOneJob(): void
    {
        $values = implode("\n", range(1, 400_000)) . "\n";
        $lines = $this->spindle(['-X', '-k', '-j2', 'printf', '%s\n'], $values);
        $counts = $this->spindle(['-X', '-k', '-j2', 'sh', '-c', 'echo $#', 'sh'], $values);

        self::assertSame([0, ''], [$lines->getExitCode(), $lines->getErrorOutput()]);
        self::assertTrue($lines->getOutput() === $values, 'All values, in their order');
        $jobs = explode("\n", trim($counts->getOutput()));
        self::assertGreaterThan(2, \count($jobs), 'The system allows no command with all values');
        self::assertSame(400_000, array_sum(array_map(intval(...), $jobs)));
    }

    public function testAMillionValuesNeedNoMoreMemoryThanAFewCommands(): void
    {
        $process = $this->shell(
            'seq 1000000 | php -d memory_limit=24M $SPINDLE run -X -j2 sh -c "echo \$#" sh'
                . ' | awk "{ n += \$1 } END { print n }"',
        );

        self::assertOutcome(0, "1000000\n", $process);
    }

    public function testWordsMayFollowTheValues(): void
    {
        self::assertOutcome(
            0,
            "[1][a][b c][][z]\n",
            $this->spindle(['-X', '-j1', 'printf', '[%s][%s][%s][%s][%s]\n', '{#}', '{}', 'z'], "a\nb c\n\n"),
        );
        self::assertOutcome(0, "a\nb\n", $this->spindle(['-X', '-j1', '{}'], "printf\n%s\\n\na\nb\n"));
    }

    public function testAnInputMayBeOneValueOrEmptyOrHaveNoEnd(): void
    {
        $command = ['-X', '-j1', 'printf', '[%s]'];

        self::assertOutcome(0, '[a]', $this->spindle($command, "a\n"));
        self::assertOutcome(0, '[a][b]', $this->spindle($command, "a\nb"));
        self::assertOutcome(0, '[][]', $this->spindle($command, "\n\n"));
        self::assertOutcome(0, "[a\nb][]", $this->spindle(['-0', ...$command], "a\nb\0\0"));
        self::assertOutcome(0, "[a\nb][]", $this->spindle([...$command, ':::', "a\nb", '']));
        self::assertOutcome(0, '', $this->spindle($command, ''));
    }

    public function testNumberAndSizeAreLimited(): void
    {
        $input = "1\n22\n333\n4444\n5\n";

        self::assertOutcome(0, "1 22\n333 4444\n5\n", $this->spindle(['-kn2', 'echo'], $input));
        self::assertOutcome(0, "1 22\n333\n4444\n5\n", $this->spindle(['-kXj1', '-s', '10', 'echo'], $input));
        self::assertOutcome(0, "1 22\n333 4444\n5\n", $this->spindle(['-kXj1', '-n2', '-s', '20', 'echo'], $input));
        self::assertOutcome(
            255,
            "1\n22\n333\n",
            $this->spindle(['-kXj1', '-s', '9', 'echo'], $input),
            'spindle: option --max-chars: input 4 makes the command 10 bytes long, and the limit is 9;'
                . " give a larger limit or a shorter input\n",
        );
    }

    public function testAValueWithNulFailsOnlyItsJob(): void
    {
        $process = $this->spindle(['-kXj1', '-s', '14', 'echo'], "1\n2\n3\n4\0x\n5\n6\n7\n8\n9\n");

        self::assertOutcome(
            1,
            "1 2 3\n7 8 9\n",
            $process,
            "spindle: job 2: Argument 1 of 'echo' contains a NUL byte at offset 1, which the system cannot pass to a"
                . " program\n",
        );
    }

    public function testAValueThatIsTooLongForTheSystemFailsOnlyItsJob(): void
    {
        $long = str_repeat('x', 1 << 17);
        $process = $this->spindle(['-kn2', 'echo'], "a\nb\nc\n{$long}\nd\n");

        self::assertSame([1, "a b\nd\n"], [$process->getExitCode(), $process->getOutput()]);
        self::assertStringContainsString('Argument list too long', $process->getErrorOutput());
    }

    public function testTheJobLogAndTheDryRunHaveAllValues(): void
    {
        $command = ['-kn2', 'sh', '-c', 'exit $#', 'sh'];

        self::assertOutcome(0, "sh -c 'exit \$#' sh a 'b c'\nsh -c 'exit \$#' sh ''\n", $this->spindle(
            ['--dry-run', ...$command],
            "a\nb c\n\n",
        ));
        self::assertOutcome(2, '', $this->spindle(['--joblog', 'log', ...$command], "a\nb c\n\n"));
        preg_match_all('/\t([^\t\n]+)$/m', (string) file_get_contents($this->path('log')), $lines);
        self::assertSame(['Command', "sh -c 'exit \$#' sh a 'b c'", "sh -c 'exit \$#' sh ''"], $lines[1]);
        $resumed = ['--joblog', 'log', '--resume-failed', ...$command];
        self::assertOutcome(2, '', $this->spindle($resumed, "a\nb c\n\n"));
        self::assertCount(5, (array) file($this->path('log')));
    }
}
