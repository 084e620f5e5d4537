<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use PHPUnit\Framework\TestCase;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\Output;
use Spindle\Command\StartMethod;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\LeavesNothing;

final class InheritedOutputTest extends TestCase
{
    use EndsInTime;
    use LeavesNothing;

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testInheritedOutputGoesToTheTargetOfTheProcess(StartMethod $start): void
    {
        $host = Host::start(self::class . '::inherit', [$start->value]);
        self::assertSame(0, $host->wait(), $host->getErrorOutput());

        self::assertStringContainsString("before\nto standard output\nafter\n", $host->getOutput());
        self::assertStringContainsString('to standard error', $host->getErrorOutput());
        self::assertStringContainsString('result: ["","captured\n"]', $host->getOutput());
    }

    /** @return list<string> captured bytes of both outputs */
    public static function inherit(string $start): array
    {
        $pool = new CommandPool(1, 0, new CommandPoolOptions(start: StartMethod::from($start)));
        echo "before\n";
        $one = $pool->execute(
            Command::shell('echo to standard output; echo captured >&2')->withStdout(Output::Inherit),
        );
        echo "after\n";
        $pool->execute(Command::shell('echo to standard error >&2')->withStderr(Output::Inherit));

        return [$one->stdout(), $one->stderr()];
    }
}
