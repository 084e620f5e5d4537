<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run\Output;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\Run\Input\InputJob;
use Spindle\Cli\Internal\Run\Input\JobValues;
use Spindle\Cli\Internal\Run\Output\BarView;
use Spindle\Cli\Internal\Run\Output\ScreenState;
use Spindle\Cli\Internal\Run\Output\ScreenStyle;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\Command;
use Spindle\Tests\VirtualTime;

final class BarViewTest extends TestCase
{
    use VirtualTime;

    /** @return iterable<string, array{int, string}> */
    public static function widths(): iterable
    {
        yield 'wide' => [
            110,
            '8/40 [========>                                  ]  1 running  2 failed  2.0/s  ETA 0:16 +-0:03'
            . '  0:05 sleep 111111111111…',
        ];
        yield 'usual' => [80, '8/40 [=====>                       ]  1 running  2 failed  2.0/s  ETA 0:16 +-0:03'];
        yield 'narrow' => [50, '8/40 [=>        ]  2 failed  2.0/s  ETA 0:16 +-0:03'];
        yield 'tiny' => [12, '8/40 [=>   ]'];
    }

    #[DataProvider('widths')]
    public function testTheLineFillsTheWidthAndLeavesOutWhatDoesNotFit(int $columns, string $line): void
    {
        $text = (new BarView(new ScreenStyle(false, false)))->line($this->state(40), $columns);

        self::assertSame($columns, \strlen(str_replace('…', '.', $text)));
        self::assertSame(
            preg_replace('/ +/', ' ', preg_replace('/=+/', '=', $line) ?? ''),
            preg_replace('/ +/', ' ', preg_replace('/=+/', '=', $text) ?? ''),
        );
    }

    public function testAnUnknownTotalHasNoShareAndTheElapsedTime(): void
    {
        $text = (new BarView(new ScreenStyle(false, true)))->line($this->state(null), 60);

        self::assertMatchesRegularExpression('~^8 \[-+<=>-+\]  1 running  2 failed  2\.0/s  0:04$~', $text);
    }

    public function testColoursDoNotCount(): void
    {
        $text = (new BarView(new ScreenStyle(true, true)))->line($this->state(40), 100);

        self::assertStringContainsString("\e[31m2 failed\e[0m", $text);
        self::assertSame(100, ScreenStyle::width($text));
    }

    private function state(?int $total): ScreenState
    {
        $statistics = new RunStatistics();
        $this->freeze(4.0);
        [$statistics->succeeded, $statistics->failed, $statistics->total] = [6, 2, $total];
        $job = new InputJob(9, JobValues::of(['x']), Command::of('sleep', str_repeat('1', 100)));

        return new ScreenState($statistics, [[$job, 5.0]], 3.0, [], '');
    }
}
