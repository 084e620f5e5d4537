<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use PHPUnit\Framework\Attributes\DataProviderExternal;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\Command\CommandPoolOptions;
use Spindle\Command\Output;
use Spindle\Command\StartMethod;
use Spindle\Tests\Host;
use Spindle\Tests\LauncherPhp;
use Spindle\Tests\TidyTestCase;

final class InheritedOutputTest extends TidyTestCase
{
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
        $pool = new CommandPool(1, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        echo "before\n";
        $one = $pool->execute(
            Command::shell('echo to standard output; echo captured >&2')->withStdout(Output::Inherit),
        );
        echo "after\n";
        $pool->execute(Command::shell('echo to standard error >&2')->withStderr(Output::Inherit));

        return [$one->stdout(), $one->stderr()];
    }

    #[DataProviderExternal(LauncherPhp::class, 'startMethods')]
    public function testOutputsInAFileDoNotOverwriteEachOther(StartMethod $start): void
    {
        $path = (string) tempnam(sys_get_temp_dir(), 'inherited');
        $within = ['/bin/sh', '-c', "exec \"$@\" >{$path} 2>&1", 'sh'];
        self::assertSame(0, Host::start(self::class . '::inheritOften', [$start->value], $within)->wait());
        $content = (string) file_get_contents($path);
        unlink($path);

        self::assertStringStartsWith("before\n", $content);
        self::assertSame([200, 200], [
            substr_count($content, "to standard output\n"),
            substr_count($content, "to standard error\n"),
        ]);
    }

    public static function inheritOften(string $start): void
    {
        $pool = new CommandPool(8, 0, new CommandPoolOptions(startMethod: StartMethod::from($start)));
        echo "before\n";
        $command = Command::shell('echo to standard output; echo to standard error >&2')
            ->withStdout(Output::Inherit)
            ->withStderr(Output::Inherit);
        foreach ($pool->run(array_fill(0, 200, $command)) as $result) {
            $result->orThrow();
        }
        $pool->close();
    }
}
