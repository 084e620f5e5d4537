<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Cli\Run;

use PHPUnit\Framework\TestCase;
use Spindle\Cli\Internal\OutputStream;
use Spindle\Cli\Internal\Run\Input\InputWait;
use Spindle\Cli\Internal\Run\JobControl;
use Spindle\Cli\Internal\Run\Output\Console;
use Spindle\Cli\Internal\Run\Output\ProgressMode;
use Spindle\Cli\Internal\Run\ProgressOptions;
use Spindle\Cli\Internal\Run\RetryWarning;
use Spindle\Cli\Internal\Run\RunStatistics;
use Spindle\Command\CommandPool;

final class RetryWarningTest extends TestCase
{
    public function testItIsGivenOnceWhenOnlyAttemptsFail(): void
    {
        $warning = self::warning();

        self::assertNull($warning->due(0, 8, 100.0), 'few failed attempts');
        self::assertNull($warning->due(0, 50, 29.0), 'a short time');
        self::assertSame(
            'no job has finished for 30 s, and 9 attempts have failed; --retries 0 repeats a failing job until it'
                . ' succeeds',
            $warning->due(0, 9, 30.0),
        );
        self::assertNull($warning->due(0, 10, 31.0));
    }

    public function testAFinishedJobBeginsTheCountAgain(): void
    {
        $warning = self::warning();

        self::assertNull($warning->due(1, 9, 30.0));
        self::assertNull($warning->due(1, 17, 90.0));
        self::assertNull($warning->due(2, 18, 91.0));
        self::assertStringContainsString('for 60 s, and 9 attempts', (string) $warning->due(2, 27, 151.0));
    }

    private static function warning(): RetryWarning
    {
        $pool = new CommandPool(1);
        $statistics = new RunStatistics();

        return new RetryWarning($pool, $statistics, new Console(
            OutputStream::standardOutput(),
            OutputStream::standardError(),
            new ProgressOptions(ProgressMode::None),
            $statistics,
            new JobControl($pool, new InputWait(), $statistics, 1),
        ));
    }
}
