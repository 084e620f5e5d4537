<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\TestWith;

/** Shows that names of columns never lead to a command that was not meant, whatever names an input has. */
final class HeaderTest extends SpindleCommandTestCase
{
    public function testAColumnIsFoundAmongThousands(): void
    {
        $numbers = range(1, 6000);
        $names = array_map(static fn(int $number): string => "column_number_{$number}", $numbers);
        $input = implode(',', $names) . "\n" . implode(',', $numbers) . "\n";

        $options = ['--header', ':', '--colsep', ','];
        $process = $this->spindle([...$options, 'echo', '{column_number_7}', '{6000}', '{}'], $input);

        self::assertSame('', $process->getErrorOutput());
        self::assertStringStartsWith('7 6000 1 2 3 ', $process->getOutput());
        self::assertSame(0, $process->getExitCode());
    }

    public function testAColumnWithManyBlanksIsNotLost(): void
    {
        $input = 'a' . str_repeat(' ', 2_000_000) . "b, second\t\v ,third\n";

        self::assertOutcome(0, "[second]\n", $this->spindle(['--colsep', ',', 'echo', '[{2}]'], $input));
    }

    public function testTheFirstNameHasNoByteOrderMark(): void
    {
        $arguments = ['--header', ':', '--colsep', ',', 'echo', '{id}', '{name}'];
        $process = $this->spindle($arguments, "\u{FEFF}id,name\n1,a\n");
        self::assertOutcome(0, "1 a\n", $process);
    }

    public function testANameHasNoCarriageReturn(): void
    {
        self::assertOutcome(
            0,
            "rm -rf 'a b'/cache\n",
            $this->spindle(['--dry-run', '--header', ':', '--trim', 'r', 'rm -rf {dir}/cache'], "dir\r\na b\r\n"),
        );
    }

    /** @return iterable<string, array{list<string>}> options and command */
    public static function misspelledNames(): iterable
    {
        yield 'words' => [['--header', ':', 'touch', '{dri}/ran']];
        yield 'a line for the shell' => [['--header', ':', 'touch "{dri}/ran"']];
        yield 'a part of a path' => [['--header', ':', '--colsep', ',', 'touch ran{dri/.}']];
        yield 'a name with a blank' => [['--header', ':', 'touch ran "{the dir}"']];
    }

    /** @param list<string> $arguments */
    #[DataProvider('misspelledNames')]
    public function testAValueIsNotAddedToACommandWithAMisspelledName(array $arguments): void
    {
        $process = $this->spindle($arguments, "dir\nran\n");

        self::assertSame(255, $process->getExitCode());
        self::assertStringContainsString('the header has no such column', $process->getErrorOutput());
        self::assertFileDoesNotExist($this->path('ran'));
    }

    #[TestWith(["\nran\n"])]
    #[TestWith([",\nran,ran\n"])]
    public function testAMisspelledNameIsRefusedEvenIfAllNamesAreEmpty(string $input): void
    {
        $process = $this->spindle(['--header', ':', '--colsep', ',', 'touch', '{dri}/ran'], $input);

        self::assertSame(255, $process->getExitCode());
        self::assertStringContainsString('the header has no such column', $process->getErrorOutput());
    }

    public function testOtherBracesStayInACommandWithAReplacementString(): void
    {
        $arguments = ['--header', ':', 'echo', '{print}', '{1..3}', '{name}'];
        self::assertOutcome(0, "{print} {1..3} a\n", $this->spindle($arguments, "name\na\n"));
        self::assertOutcome(0, "{1..3} a\n", $this->spindle(['--header', ':', 'echo', '{1..3}'], "name\na\n"));
        self::assertOutcome(0, "{name} a\n", $this->spindle(['echo', '{name}'], "a\n"));
    }

    public function testAHeaderThatCannotBeReadIsReported(): void
    {
        self::assertOutcome(
            255,
            '',
            $this->shell('exec timeout -k 1 10 $SPINDLE run --header : echo 0>write-only'),
            "spindle: can't read the input after line 0: Bad file descriptor\n",
        );
    }

    public function testALongHeaderIsRefusedBeforeAllOfItIsRead(): void
    {
        $process = $this->shell('ulimit -v 1000000; "$SPINDLE" run --header : touch ran < /dev/zero');

        self::assertOutcome(
            255,
            '',
            $process,
            "spindle: input line 1 is longer than 4 MiB, the limit for one line\n",
        );
        self::assertFileDoesNotExist($this->path('ran'));
    }
}
