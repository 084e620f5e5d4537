<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;
use Spindle\Cli\ConsoleApplication;
use Spindle\Cli\Internal\GivenOptions;
use Spindle\Cli\Internal\Run\ProgressOptions;
use Spindle\Cli\Internal\Run\RunStatistics;
use Symfony\Component\Console\Input\ArrayInput;

final class ProgressOptionsTest extends TestCase
{
    private mixed $words = [];

    #[Before]
    protected function keepWords(): void
    {
        $this->words = $_SERVER['argv'] ?? [];
    }

    #[After]
    protected function restoreWords(): void
    {
        $_SERVER['argv'] = $this->words;
    }

    /** @param list<string> $words */
    #[TestWith([['--joblog', 'log'], 'spindle run --resume --joblog log'])]
    #[TestWith([['--resume-failed', '--joblog', 'log'], 'spindle run --resume-failed --joblog log'])]
    #[TestWith([['--shuf'], null])]
    #[TestWith([['--shuf', '--joblog', 'log'], null])]
    #[TestWith([['--pipe', '--round-robin', '--joblog', 'log'], null])]
    #[TestWith([["a\tb's", 'c d', '', '--joblog', 'log'], "spindle run --resume \$'a\\tb\\'s' 'c d' '' --joblog log"])]
    #[TestWith([["\xe9\u{9b}", '--joblog', 'log'], "spindle run --resume \$'\\351\\302\\233' --joblog log"])]
    public function testTheCommandThatContinuesTheRunCanBeRun(array $words, ?string $again): void
    {
        $_SERVER['argv'] = ['spindle', 'run', ...$words];
        $options = ['command' => 'run'];
        foreach ($words as $word) {
            $options += str_starts_with($word, '--') ? [$word => $word === '--joblog' ? 'log' : true] : [];
        }
        $command = (new ConsoleApplication())->find('run');
        $command->mergeApplicationDefinition();
        $given = new GivenOptions(new ArrayInput($options, $command->getDefinition()));

        $statistics = new RunStatistics();
        $resume = ProgressOptions::of($given, [])->resume;
        self::assertSame(
            $again === null ? null : "to run the jobs that have not finished: {$again}",
            $resume?->hint($statistics),
        );
        $statistics->failed = 1;
        self::assertSame(
            $again === null ? null : 'to run all failed jobs again, and the jobs that have not finished: '
                . str_replace('--resume ', '--resume-failed ', $again),
            $resume?->hint($statistics),
        );
    }
}
