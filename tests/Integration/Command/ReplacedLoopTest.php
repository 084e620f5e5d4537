<?php

declare(strict_types=1);

namespace Spindle\Tests\Integration\Command;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Command\Command;
use Spindle\Command\CommandPool;
use Spindle\LauncherException;
use Spindle\Tests\Host;
use Spindle\Tests\ReplacedLoop;
use Spindle\Tests\TidyTestCase;

/** EventLoop::setDriver() may replace the event loop of a {@see CommandPool}. */
final class ReplacedLoopTest extends TidyTestCase
{
    private const REFUSAL = 'EventLoop::setDriver() has replaced the event loop of this pool. Create another pool';

    /** @param list<string> $expected */
    #[TestWith(['', ['a', 'a', 'closed']])]
    #[TestWith(['execute', [self::REFUSAL, self::REFUSAL, 'closed']])]
    #[TestWith(['maxConcurrency', [self::REFUSAL, self::REFUSAL, 'closed']])]
    public function testAPoolWorksInItsFirstLoopAndRefusesCommandsInAnother(string $firstUse, array $expected): void
    {
        self::assertSame(
            ['outcomes' => $expected, 'timers' => 30],
            Host::call(self::class . '::replaceLoop', [$firstUse], timeout: 20),
        );
    }

    /** @return array<string, mixed> */
    public static function replaceLoop(string $firstUse): array
    {
        $pool = new CommandPool(1);
        $echo = Command::of('printf', 'a');
        match ($firstUse) {
            'execute' => $pool->execute($echo),
            'maxConcurrency' => $pool->maxConcurrency(),
            default => null,
        };
        $loop = ReplacedLoop::startAfterATurn();
        $outcomes = [];
        foreach ([
            static fn(): string => $pool->execute($echo)->stdout(),
            static function () use ($pool, $echo): string {
                foreach ($pool->run([$echo]) as $result) {
                    return $result->stdout();
                }

                return '';
            },
            static function () use ($pool): string {
                $pool->close();

                return 'closed';
            },
        ] as $call) {
            try {
                $outcomes[] = $call();
            } catch (LauncherException $refusal) {
                $outcomes[] = $refusal->getMessage();
            }
        }
        unset($pool, $call);
        gc_collect_cycles();

        return ['outcomes' => $outcomes, 'timers' => $loop->remainingTimers()];
    }
}
