<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use PHPUnit\Framework\Attributes\DataProvider;
use Spindle\Command\Command;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

/**
 * Keys and order of results.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait YieldsResults
{
    public function testResultsComeAsCommandsEnd(): void
    {
        $after = fn(string $other): Command
            => Command::shell("until test -e {$this->path($other)}; do sleep 0.02; done");
        $order = [];
        foreach ($this->pool(3)->run(
            ['last' => $after('second'), 'first' => Command::of('true'), 'second' => $after('first')],
        ) as $key => $_) {
            $order[] = $key;
            touch($this->path($key));
        }

        self::assertSame(['first', 'second', 'last'], $order);
    }

    public function testInOrderResultsComeAsCommandsWereGiven(): void
    {
        $commands = [];
        for ($i = 0; $i < 60; ++$i) {
            $commands["k{$i}"] = Command::shell('sleep ' . ($i % 7 === 0 ? '0.1' : '0') . "; echo {$i}");
        }
        $run = $this->pool(4, lookahead: 8)->runInOrder($commands);
        $seen = [];
        foreach ($run as $key => $result) {
            $seen[$key] = (int) $result->stdout();
        }

        self::assertSame(array_combine(array_keys($commands), range(0, 59)), $seen);
        self::assertSame(60, $run->getReturn()->succeeded);
    }

    public function testInOrderAFirstOneThatIsSlowHoldsUpNoOther(): void
    {
        $commands = [Command::of('sleep', '0.2')];
        for ($i = 1; $i < 10; ++$i) {
            $commands[] = Command::of('true');
        }
        $start = hrtime(true);
        foreach ($this->pool(2)->runInOrder($commands) as $_) {
            continue;
        }

        self::assertLessThan(3.0, (hrtime(true) - $start) / 1e9);
    }

    public function testKeysOfAnyTypeAreKept(): void
    {
        $object = new \stdClass();
        $keys = [null, true, 1.5, ['a', 'list'], $object, "\xFF\0", 7, '7', 7, 7];
        $input = static function () use ($keys): \Generator {
            foreach ($keys as $i => $key) {
                yield $key => Command::of('echo', (string) $i);
            }
        };
        $seen = [];
        foreach ($this->pool(3)->run($input()) as $key => $result) {
            self::assertSame($key, $result->key);
            $seen[(int) $result->stdout()] = $key;
        }
        ksort($seen);

        self::assertSame($keys, $seen);
    }

    public function testEveryCommandHasExactlyOneResult(): void
    {
        $input = static function (): \Generator {
            for ($i = 0; $i < 500; ++$i) {
                yield $i => Command::of('echo', (string) $i);
            }
        };
        $seen = [];
        $run = $this->pool(8)->run($input());
        foreach ($run as $key => $result) {
            self::assertSame("{$key}\n", $result->stdout());
            self::assertArrayNotHasKey($key, $seen);
            $seen[$key] = true;
        }

        self::assertCount(500, $seen);
        self::assertSame(
            [500, 0, false],
            [$run->getReturn()->succeeded, $run->getReturn()->failed, $run->getReturn()->halted],
        );
    }

    public function testTheSummaryCountsFailures(): void
    {
        $run = $this->pool(2)->run(
            [Command::of('true'), Command::of('false'), Command::of('/no/such/program'), Command::shell('kill -9 $$')],
        );
        self::assertCount(4, iterator_to_array($run));

        self::assertSame(
            [1, 3, false],
            [$run->getReturn()->succeeded, $run->getReturn()->failed, $run->getReturn()->halted],
        );
    }

    public function testACommandObjectMayBeGivenTwice(): void
    {
        $command = Command::of('echo', 'again')->withInput('x');

        self::assertSame(
            ['again', 'again', 'again'],
            self::outputs($this->pool(2)->run([$command, $command, $command])),
        );
    }

    /** @return iterable<string, array{string}> */
    public static function keys(): iterable
    {
        yield 'binary' => ["\0\xFF\xC3\x28"];
        yield 'empty' => [''];
        yield 'long' => [str_repeat('k', 100_000)];
    }

    #[DataProvider('keys')]
    public function testAnyStringIsAKey(string $key): void
    {
        foreach ($this->pool(1)->run([$key => Command::of('true')]) as $found => $result) {
            self::assertSame($key, $found);
            self::assertSame($key, $result->key);
        }
    }
}
