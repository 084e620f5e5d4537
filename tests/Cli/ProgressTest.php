<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

use PHPUnit\Framework\TestCase;

final class ProgressTest extends TestCase
{
    use RunsSpindle;

    public function testLinesOnStandardErrorSayHowFarItIs(): void
    {
        $process = $this->spindle(['-k', '--progress', 'plain', 'test', 'b', '!=', ':::', 'a', 'b', 'c']);

        self::assertSame([1, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertMatchesRegularExpression(
            "~^3/3 done, 1 failed, [\\d.]+/s, ETA 0:00\n\$~mD",
            $process->getErrorOutput(),
        );
    }

    public function testProgramsReadItAsJson(): void
    {
        $process = $this->spindle(['--progress', 'json', 'sleep', ':::', '0', '1.2']);

        self::assertSame([0, ''], [$process->getExitCode(), $process->getOutput()]);
        $lines = array_map(
            static fn(string $line): mixed => json_decode($line, true, 8, \JSON_THROW_ON_ERROR),
            explode("\n", rtrim($process->getErrorOutput())),
        );
        self::assertCount(2, $lines);
        [$middle, $end] = $lines;
        self::assertIsArray($middle);
        self::assertIsArray($end);
        self::assertSame(['done', 'total', 'failed', 'running', 'rate', 'eta', 'elapsed'], array_keys($end));
        self::assertSame([1, 2, 0, 1], [$middle['done'], $middle['total'], $middle['failed'], $middle['running']]);
        self::assertSame([2, 2, 0, 0, 0], [$end['done'], $end['total'], $end['failed'], $end['running'], $end['eta']]);
    }

    public function testTheTotalIsKnownForAFileAndLeavesOutWhatTheLogHas(): void
    {
        $this->file('input', "a\nb\nc");
        $this->spindle(['--joblog', 'log', '-a', 'input', '-j1', '--halt', 'soon,done=1', 'sleep 0; true']);

        $process = $this->shell('$SPINDLE run -j1 --joblog log --resume --progress json "sleep 0; true" < input');

        self::assertStringEndsWith("\n", $process->getErrorOutput());
        self::assertStringContainsString('{"done":2,"total":2,', $process->getErrorOutput());
    }

    public function testABarIsForATerminalOnly(): void
    {
        $bar = fn(string $line): string
            => $this->shell("TERM=xterm script -qec '{$line}' /dev/null < /dev/null")->getOutput();

        $drawn = $bar('$SPINDLE run -j1 --progress bar echo ::: a b');
        self::assertMatchesRegularExpression('~2/2 \[=+\] 100%  [\d.]+/s  ETA 0:00  failed 0\r\n$~', $drawn);
        self::assertStringNotContainsString("\e]", $drawn, 'the progress of the taskbar, from symfony/console 8.1 on');
        // After the first job the bar is visible, and is cleared before other output is written.
        self::assertMatchesRegularExpression('~^a\r\n1/2 [^\r\n]+\e\[2Kb\r\n~', $drawn);
        self::assertStringContainsString('[=', $bar('NO_COLOR=1 $SPINDLE run --progress bar echo ::: a b 2>&1'));

        self::assertMatchesRegularExpression(
            "~^2/2 done, 0 failed, [\\d.]+/s, ETA 0:00\n\$~mD",
            $this->spindle(['--progress', 'bar', 'true', ':::', 'a', 'b'])->getErrorOutput(),
        );
        self::assertStringNotContainsString("\e[", $bar('TERM=dumb $SPINDLE run --progress bar echo ::: a b 2>&1'));
    }

    public function testNothingIsShownUnlessItIsAskedFor(): void
    {
        self::assertOutcome(0, '', $this->spindle(['true', ':::', 'a']));
        self::assertOutcome(0, '', $this->spindle(['--progress', 'none', 'true', ':::', 'a']));
    }
}
