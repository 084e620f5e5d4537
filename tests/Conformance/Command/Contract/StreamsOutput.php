<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Command\Contract;

use Spindle\Command\Command;
use Spindle\Command\CommandResult;
use Spindle\Tests\Async;
use Spindle\Tests\Conformance\Command\CommandPoolTestCase;

use function Amp\delay;

/**
 * Output that goes to a closure or an open stream.
 *
 * @phpstan-require-extends CommandPoolTestCase
 */
trait StreamsOutput
{
    public function testAClosureGetsEveryByteInOrder(): void
    {
        $received = '';
        $result = $this->execute($this->php('for ($i = 0; $i < 300_000; ++$i) { echo $i, "\n"; }')
            ->withStdout(static function (string $bytes) use (&$received): void {
                $received .= $bytes;
            }));

        self::assertTrue($received === implode("\n", range(0, 299_999)) . "\n");
        self::assertSame('', $result->stdout(), 'it is not captured as well');
    }

    public function testAClosureGetsOutputBeforeTheCommandEnds(): void
    {
        $go = $this->path('go');
        $result = $this->execute(Command::shell("echo first; until test -e {$go}; do sleep 0.02; done; echo second")
            ->withStdout(static function () use ($go): void {
                touch($go);
            }));

        self::assertTrue($result->succeeded());
    }

    public function testBothOutputsMayGoToClosures(): void
    {
        $out = $error = '';
        $this->execute(
            $this->php(
                'for ($i = 0; $i < 200; ++$i) { fwrite(STDOUT, str_repeat("o", 1000));'
                . ' fwrite(STDERR, str_repeat("e", 1000)); }',
            )
                ->withStdout(static function (string $bytes) use (&$out): void {
                    $out .= $bytes;
                })
                ->withStderr(static function (string $bytes) use (&$error): void {
                    $error .= $bytes;
                }),
        );

        self::assertTrue($out === str_repeat('o', 200_000));
        self::assertTrue($error === str_repeat('e', 200_000));
    }

    public function testAClosureThatSuspendsHoldsTheCommandBackButNotTheOthers(): void
    {
        $pool = $this->pool(2);
        $received = 0;
        $command = $this->php(
            '$t = hrtime(true); for ($i = 0; $i < 80; ++$i) { fwrite(STDOUT, str_repeat("x", 100_000)); }'
            . ' fwrite(STDERR, (hrtime(true) - $t) / 1e9);',
        )
            ->withStdout(static function (string $bytes) use (&$received): void {
                delay(0.5 * \strlen($bytes) / 8_000_000);
                $received += \strlen($bytes);
            });
        $slow = Async::run(static fn(): CommandResult => $pool->execute($command));
        $others = 0;
        while (!$slow->isComplete()) {
            $pool->execute(Command::of('true'));
            ++$others;
        }

        self::assertGreaterThan(0.2, (float) $slow->await()->stderr(), 'the command waited for the closure');
        self::assertSame(8_000_000, $received);
        self::assertGreaterThan(5, $others);
    }
}
