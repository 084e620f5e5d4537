<?php

declare(strict_types=1);

namespace Spindle\Tests\Fault\Remote;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Remote\BrokerException;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\RedisBroker;
use Spindle\Tests\Fault\Worker\WorkerDeploymentTest;
use Spindle\Tests\FreeDescriptors;
use Spindle\Tests\Host;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\UsesRedis;
use Spindle\Tests\TidyTestCase;
use Symfony\Component\Process\Process;

/** A process reads the scripts for the engine when it first needs them. */
final class ScriptDeploymentTest extends TidyTestCase
{
    use OwnDirectory;
    use UsesRedis;

    private const SCRIPTS = 'Remote/Internal/Redis/scripts';

    #[TestWith(['replace', 'are of another version of Spindle'])]
    #[TestWith(['remove', 'were removed'])]
    public function testScriptsOfAnotherVersionAreNotUsed(string $how, string $why): void
    {
        (new Process(['cp', '-R', \dirname(__DIR__, 3) . '/src', $this->path('src')]))->mustRun();
        $folder = $this->path('src/' . self::SCRIPTS);
        $arguments = [Redis::shared()->url(), self::newQueue(), $this->path('src'), $how];

        $failure = Host::call(self::class . '::deploy', $arguments);
        self::assertIsString($failure);
        self::assertStringStartsWith(BrokerRefusedException::class, $failure);
        self::assertStringEndsWith(
            "can't be used: the scripts in {$folder} {$why}, as after a deployment; restart this process, or PHP-FPM",
            $failure,
        );
    }

    public static function deploy(string $address, string $queue, string $source, string $how): string
    {
        WorkerDeploymentTest::load($source);
        $broker = new RedisBroker($address);
        $scripts = "{$source}/" . self::SCRIPTS;
        if ($how === 'remove') {
            rename($source, "{$source}.old");
        } else {
            $prelude = (string) file_get_contents("{$scripts}/prelude.lua");
            file_put_contents("{$scripts}/prelude.lua", preg_replace('/\d+\.\d+\.\d+/', '99.9.9', $prelude, 1));
        }

        self::failure(static fn() => $broker->statistics($queue));

        return self::failure(static fn() => $broker->statistics($queue));
    }

    public function testScriptsAreReadAgainWhenADescriptorIsFree(): void
    {
        $shell = ['/bin/sh', '-c', 'ulimit -n 100; exec "$@"', 'sh'];
        $arguments = [Redis::shared()->url(), self::newQueue()];

        $failures = Host::call(self::class . '::runWithoutDescriptors', $arguments, $shell);
        self::assertIsArray($failures);
        self::assertIsString($failures[0]);
        self::assertStringStartsWith(BrokerUnavailableException::class, $failures[0]);
        self::assertStringEndsWith("prelude.lua can't be read now", $failures[0]);
        self::assertSame('', $failures[1]);
    }

    /** @return list<string> failure of a request without a free descriptor, and of the next request */
    public static function runWithoutDescriptors(string $address, string $queue): array
    {
        $broker = new RedisBroker($address);
        $request = static fn(): string => self::failure(static fn() => $broker->statistics($queue));
        $files = FreeDescriptors::useAll();
        $first = $request();
        array_map(fclose(...), $files);

        return [$first, $request()];
    }

    private static function failure(\Closure $call): string
    {
        try {
            $call();
        } catch (BrokerException $exception) {
            return $exception::class . ": {$exception->getMessage()}";
        }

        return '';
    }
}
