<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Output\ScreenLines;
use Spindle\Tests\Cli\TerminalEmulator;

final class ScreenLinesTest extends TestCase
{
    public function testAnySequenceOfChangesLeavesTheLastLinesBelowOtherOutput(): void
    {
        $random = new \Random\Randomizer(new \Random\Engine\Mt19937(7));
        for ($round = 0; $round < 200; ++$round) {
            $terminal = new TerminalEmulator(20, 8);
            $lines = new ScreenLines(\STDIN);
            $output = '';
            for ($step = 0; $step < 20; ++$step) {
                if ($random->getInt(0, 4) === 0) {
                    $text = "out {$step}\r\n";
                    $terminal->feed($lines->clear() . $text);
                    $lines->wrote($text);
                    $output .= "out {$step}\n";
                }
                $expected = ["step {$step}"];
                for ($i = $random->getInt(0, 5); $i > 0; --$i) {
                    $expected[] = str_repeat((string) $random->getInt(0, 2), $random->getInt(0, 15));
                }
                $terminal->feed($lines->draw($expected));
                self::assertSame(rtrim($output . implode("\n", $expected)), $terminal->text());
            }
        }
    }

    public function testOnlyChangedLinesAreWritten(): void
    {
        $lines = new ScreenLines(\STDIN);
        $lines->draw(['one', 'two', 'three', 'four']);

        self::assertSame('', $lines->draw(['one', 'two', 'three', 'four']));
        self::assertSame("\e[2A2\e[K\r\n\n", $lines->draw(['one', '2', 'three', 'four']));
        self::assertSame("\e[3A\e[0J", $lines->clear());
        self::assertSame('', $lines->clear());
    }

    public function testLinesBeginInALineOfTheirOwn(): void
    {
        $lines = new ScreenLines(\STDIN);
        $lines->wrote("complete\npart");
        self::assertSame("\r\nline\r", $lines->draw(['line']));

        $lines->clear();
        $lines->wrote("\n");
        self::assertSame("line\r", $lines->draw(['line']));
    }

    public function testLinesThatANarrowerTerminalHasWrappedAreRemoved(): void
    {
        $lines = new ScreenLines(\STDIN);
        $lines->draw(["\e[31m" . str_repeat('x', 25) . "\e[0m", '', 'last']);

        self::assertSame("\e[4A\e[0J", $lines->clearAfterResize(10));
    }
}
