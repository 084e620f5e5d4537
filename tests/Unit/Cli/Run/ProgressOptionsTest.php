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
    #[TestWith([['--joblog', 'log'], 'spindle run --resume-failed --joblog log'])]
    #[TestWith([['--resume-failed', '--joblog', 'log'], 'spindle run --resume-failed --joblog log'])]
    #[TestWith([['--shuf'], null])]
    #[TestWith([['--shuf', '--joblog', 'log'], null])]
    #[TestWith([['--pipe', '--round-robin', '--joblog', 'log'], null])]
    public function testTheCommandThatRunsFailedJobsAgainCanBeRun(array $words, ?string $again): void
    {
        $_SERVER['argv'] = ['spindle', 'run', ...$words];
        $options = ['command' => 'run'];
        foreach ($words as $word) {
            $options += $word === 'log' ? [] : [$word => $word === '--joblog' ? 'log' : true];
        }
        $command = (new ConsoleApplication())->find('run');
        $command->mergeApplicationDefinition();
        $given = new GivenOptions(new ArrayInput($options, $command->getDefinition()));

        self::assertSame($again, ProgressOptions::of($given, [])->againCommand);
    }
}
