<?php

declare(strict_types=1);

namespace Spindle\Tests;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;
use Revolt\EventLoop;

use function Amp\delay;

/**
 * After each test there is no child, zombie, orphan, temporary file, open descriptor or watcher that was not there before.
 *
 * Processes are found by a variable in their environment that commands inherit from this process.
 */
trait LeavesNothing
{
    private const MARK = 'SPINDLE_TEST_OF';

    private string $mark = '';

    /** @var array{descriptors: array<string>, children: array<string>, files: array<string>, watchers: array<string>} */
    private array $before = ['descriptors' => [], 'children' => [], 'files' => [], 'watchers' => []];

    #[Before(10)]
    protected function lookAround(): void
    {
        $this->mark = getmypid() . '.' . bin2hex(random_bytes(6));
        putenv(self::MARK . "={$this->mark}");
        gc_collect_cycles();
        $this->before = $this->surroundings();
    }

    #[After(-10)]
    protected function findNothingLeft(): void
    {
        putenv(self::MARK);
        if (!$this->status()->isSuccess()) {
            return;
        }
        delay(0); // what is to be resumed at the loop's next turn is
        gc_collect_cycles();
        $left = fn(): array => array_filter([
            ...array_map(array_diff(...), $this->surroundings(), $this->before),
            Processes::withVariable(self::MARK, $this->mark),
        ]);
        $end = hrtime(true) + 2_000_000_000;
        while (($rest = $left()) !== [] && hrtime(true) < $end) {
            usleep(10_000);
        }
        self::assertSame([], $rest, 'The test left something behind');
    }

    /** @return array{descriptors: array<string>, children: array<string>, files: array<string>, watchers: array<string>} */
    private function surroundings(): array
    {
        $descriptors = [];
        foreach (scandir('/proc/self/fd') ?: [] as $descriptor) {
            $target = @readlink("/proc/self/fd/{$descriptor}");
            if ($target !== false) {
                $descriptors[$descriptor] = "{$descriptor} -> {$target}";
            }
        }

        return [
            'descriptors' => $descriptors,
            'children' => Processes::childrenOf((int) getmypid()),
            'files' => preg_grep('~/spindle-[0-9a-f]{24}$~', glob(sys_get_temp_dir() . '/spindle-*') ?: []) ?: [],
            'watchers' => EventLoop::getIdentifiers(),
        ];
    }
}
